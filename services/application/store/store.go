// Package store holds all SQL of the application service, one file per noun.
// Store reads; Tx writes and emits. Every query names its tenant.
package store

import (
	"context"
	"embed"
	"io/fs"
	"time"

	"github.com/doorward/doorward/pkg/customdata"
	"github.com/doorward/doorward/pkg/events"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/secure"
)

//go:embed migrations/*.sql
var files embed.FS

// Migrations makes the service's tables.
func Migrations() fs.FS { return pg.Embedded(files) }

// Config says where the service's data is and how its tables are made.
func Config(url secure.Secret) pg.Config {
	return pg.Config{URL: url, Schema: "application", Migrations: []fs.FS{events.Migrations(), customdata.Migrations(), Migrations()}}
}

// Store reads.
type Store struct {
	db      *pg.DB
	outbox  *events.Outbox
	reaches *pg.Loader[reached]
	kept    *pg.Cache[reached]
}

// New makes the store of the service.
func New(db *pg.DB, now func() time.Time) *Store {
	reaches := pg.NewLoader[reached](db, reachQuery)
	return &Store{db: db, outbox: events.NewOutbox(db, "application", now), reaches: reaches, kept: pg.NewCache(reaches, "application.reach")}
}

// Outbox is what the relay empties.
func (s *Store) Outbox() *events.Outbox { return s.outbox }

// Tx writes. Its Emit commits an event together with the rows.
type Tx struct{ *events.Tx }

// Tx runs fn in a transaction. What it changes, KeptReach tells at once.
func (s *Store) Tx(ctx context.Context, fn func(*Tx) error) error {
	defer s.kept.Forget()
	return s.LoginTx(ctx, fn)
}

// LoginTx is Tx for what a login writes, which changes no Reach.
func (s *Store) LoginTx(ctx context.Context, fn func(*Tx) error) error {
	return s.outbox.InTx(ctx, func(tx *events.Tx) error { return fn(&Tx{tx}) })
}
