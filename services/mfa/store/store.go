// Package store holds all SQL of the mfa service, one file per noun. Store reads; Tx writes
// and emits events. Every query names its tenant, except those of the workers that purge
// by age and that re-encrypt for a new master key (pkg/reseal).
package store

import (
	"context"
	"embed"
	"io/fs"
	"time"

	"github.com/doorward/doorward/pkg/counter"
	"github.com/doorward/doorward/pkg/events/outbox"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/purge/purgesql"
	"github.com/doorward/doorward/pkg/secure"
)

//go:embed migrations/*.sql
var files embed.FS

// Config says where the service's data is and how its tables are made.
func Config(url secure.Secret) pg.Config {
	return pg.Config{URL: url, Schema: "mfa",
		Migrations: []fs.FS{outbox.Migrations(), counter.Migrations(), pg.Embedded(files)}}
}

// Values of status and verificationStatus of phones and factors.
const (
	Enabled    = "ENABLED"
	Disabled   = "DISABLED"
	Verified   = "VERIFIED"
	Unverified = "UNVERIFIED"
)

// Store reads.
type Store struct {
	purgesql.Purger
	db     *pg.DB
	outbox *outbox.Outbox
}

// New returns the store of the service.
func New(db *pg.DB, now func() time.Time) *Store {
	return &Store{Purger: purgesql.NewPurger(db), db: db, outbox: outbox.New(db, "mfa", now)}
}

// Outbox is the outbox of the service.
func (s *Store) Outbox() *outbox.Outbox { return s.outbox }

// Tx writes. Its Emit commits an event together with the rows.
type Tx struct {
	*outbox.Tx
	counter.Counters
}

// Tx runs fn in a transaction.
func (s *Store) Tx(ctx context.Context, fn func(*Tx) error) error {
	return s.outbox.InTx(ctx, func(tx *outbox.Tx) error { return fn(&Tx{tx, counter.In(tx)}) })
}
