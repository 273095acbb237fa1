// Package store holds all SQL of the idsite service, one file per noun. Store
// reads; Tx writes and emits events. Every query names its tenant.
package store

import (
	"context"
	"embed"
	"io/fs"
	"time"

	"github.com/doorward/doorward/pkg/events/outbox"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/purge/purgesql"
	"github.com/doorward/doorward/pkg/secure"
)

//go:embed migrations/*.sql
var files embed.FS

// Migrations makes the service's tables.
func Migrations() fs.FS { return pg.Embedded(files) }

// Config says where the service's data is and how its tables are made.
func Config(url secure.Secret) pg.Config {
	return pg.Config{URL: url, Schema: "idsite", Migrations: []fs.FS{outbox.Migrations(), Migrations()}}
}

// Store reads.
type Store struct {
	purgesql.Purger
	db     *pg.DB
	outbox *outbox.Outbox
}

// New makes the store of the service.
func New(db *pg.DB, now func() time.Time) *Store {
	return &Store{Purger: purgesql.NewPurger(db), db: db, outbox: outbox.New(db, "idsite", now)}
}

// Outbox runs the service's transactions; the relay sends its events to Kafka.
func (s *Store) Outbox() *outbox.Outbox { return s.outbox }

// Tx writes. Its Emit commits an event together with the rows.
type Tx struct{ *outbox.Tx }

// Tx runs fn in a transaction.
func (s *Store) Tx(ctx context.Context, fn func(*Tx) error) error {
	return s.outbox.InTx(ctx, func(tx *outbox.Tx) error { return fn(&Tx{tx}) })
}
