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
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/secure"
)

//go:embed migrations/*.sql
var files embed.FS

// Migrations returns the service's tables.
func Migrations() fs.FS { return pg.Embedded(files) }

// Config says where the service's data is and how its tables are made.
func Config(url secure.Secret) pg.Config {
	return pg.Config{
		URL: url, Schema: "oauth", Migrations: []fs.FS{outbox.Migrations(), Migrations()},
		Placements: map[string]pg.Placement{"api_key_routes": pg.OnMain},
	}
}

// Store reads.
type Store struct {
	pg.Databases
	db     *pg.DB
	outbox *outbox.Outbox

	policies   *pg.Cache[Policy]
	webConfigs *pg.Cache[WebConfig]
	tokens     map[Kind]*pg.Cache[Token]
}

// tokenCacheSize is twice the number of tokens of a kind, half a kilobyte each.
const tokenCacheSize = 1 << 16

// policyCacheSize is in applications. A policy says whether tokens end with a password.
const policyCacheSize = 1 << 15

// New returns the store of the service.
func New(db *pg.DB, now func() time.Time) *Store {
	tokens := func(name string, kind Kind) *pg.Cache[Token] {
		return pg.NewCacheWithin[Token](db, pg.FreshBounds(tokenCacheSize), name, "oauth.tokens", kind.query(), nil)
	}
	return &Store{
		Databases: db, db: db, outbox: outbox.New(db, "oauth", now),
		policies:   pg.NewCacheWithin[Policy](db, pg.FreshBounds(policyCacheSize), "oauth.policies", "oauth.policies", policyQuery, nil),
		webConfigs: pg.NewCache[WebConfig](db, "oauth.webConfigs", "oauth.webConfigs", webConfigQuery, nil),
		tokens:     map[Kind]*pg.Cache[Token]{Access: tokens("oauth.accessTokens", Access), Refresh: tokens("oauth.refreshTokens", Refresh)},
	}
}

// Outbox runs the service's transactions, and records the events that it has
// seen.
func (s *Store) Outbox() *outbox.Outbox { return s.outbox }

// Tx writes. Its Seen commits a consumed event's id together with its effect.
type Tx struct {
	*outbox.Tx
	tokens map[Kind]*pg.Cache[Token]
}

// Tx runs fn in a transaction. RecentToken sees at once what it deletes by DeleteToken
// and DeletePair.
func (s *Store) Tx(ctx context.Context, fn func(*Tx) error) error {
	return s.outbox.InTx(ctx, func(tx *outbox.Tx) error { return fn(&Tx{tx, s.tokens}) })
}

// deletes notes that a token is not there after the transaction.
func (tx *Tx) deletes(kind Kind, tenant, token id.ID) {
	tx.tokens[kind].InvalidateAfter(tx, id.Ref{Tenant: tenant, ID: token})
}
