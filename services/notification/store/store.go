// Package store holds all SQL of the notification service, one file per noun. Store reads; Tx
// writes, in one transaction with the record that an event was seen (idempotent handlers).
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
	"github.com/doorward/doorward/pkg/usage"
)

//go:embed migrations/*.sql
var files embed.FS

// Migrations makes the service's tables.
func Migrations() fs.FS { return pg.Embedded(files) }

// Config says where the service's data is and how its tables are made.
func Config(url secure.Secret) pg.Config {
	return pg.Config{URL: url, Schema: "notification",
		Migrations: []fs.FS{outbox.Migrations(), usage.Migrations(), Migrations()}}
}

// Store reads.
type Store struct {
	purgesql.Purger
	Usage  *usage.Counter
	db     *pg.DB
	outbox *outbox.Outbox
}

// New makes the store of the service.
func New(db *pg.DB, now func() time.Time) *Store {
	return &Store{Purger: purgesql.NewPurger(db), db: db, Usage: usage.NewCounter(db, now),
		outbox: outbox.New(db, "notification", now)}
}

// Outbox is the outbox of the service: events that its transactions emit, for the relay to
// send, and the record of the events that the service has seen.
func (s *Store) Outbox() *outbox.Outbox { return s.outbox }

// Tx writes. Its Seen and its Emit commit an event together with the rows.
type Tx struct{ *outbox.Tx }

// Tx runs fn in a transaction.
func (s *Store) Tx(ctx context.Context, fn func(*Tx) error) error {
	return s.outbox.InTx(ctx, func(tx *outbox.Tx) error { return fn(&Tx{tx}) })
}
