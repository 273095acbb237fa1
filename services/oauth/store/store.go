// Package store holds all SQL of the OAuth service, one file per noun. Store
// reads; Tx writes. Every query names its tenant, but for FindKey, which leads to
// it, and the purges, which look at age alone.
package store

import (
	"context"
	"embed"
	"io/fs"
	"time"

	"github.com/doorward/doorward/pkg/events/outbox"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/secure"
)

//go:embed migrations/*.sql
var files embed.FS

// Migrations returns the service's tables.
func Migrations() fs.FS { return pg.Embedded(files) }

// Config says where the service's data is and how its tables are made.
func Config(url secure.Secret) pg.Config {
	return pg.Config{URL: url, Schema: "oauth", Migrations: []fs.FS{outbox.Migrations(), Migrations()}}
}

// Store reads.
type Store struct {
	db     *pg.DB
	outbox *outbox.Outbox

	policies   *pg.Cache[Policy]
	webConfigs *pg.Cache[WebConfig]
	tokens     map[Kind]*pg.Cache[LiveToken]
}

// validated bounds the tokens that were just validated, which the client reads next:
// a validation redirects to the token.
var validated = pg.Bounds{Rows: 4096, MaxAge: 100 * time.Millisecond}

// New returns the store of the service.
func New(db *pg.DB, now func() time.Time) *Store {
	return &Store{
		db: db, outbox: outbox.New(db, "oauth", now),
		policies:   pg.NewCache[Policy](db, "oauth.policies", "oauth.policies", policyQuery, nil),
		webConfigs: pg.NewCache[WebConfig](db, "oauth.webConfigs", "oauth.webConfigs", webConfigQuery, nil),
		tokens: map[Kind]*pg.Cache[LiveToken]{
			Access:  pg.NewCacheWithin[LiveToken](db, validated, "oauth.accessTokens", "oauth.tokens", Access.query(), nil),
			Refresh: pg.NewCacheWithin[LiveToken](db, validated, "oauth.refreshTokens", "oauth.tokens", Refresh.query(), nil),
		},
	}
}

// Outbox runs the service's transactions, and records the events that it has
// seen.
func (s *Store) Outbox() *outbox.Outbox { return s.outbox }

// Tx writes. Its Seen commits a consumed event's id together with its effect.
type Tx struct{ *outbox.Tx }

// Tx runs fn in a transaction.
func (s *Store) Tx(ctx context.Context, fn func(*Tx) error) error {
	return s.outbox.InTx(ctx, func(tx *outbox.Tx) error { return fn(&Tx{tx}) })
}
