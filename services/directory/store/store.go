// Package store holds all SQL of the directory service, one file per noun.
// Store reads; Tx writes and emits. Every query names its tenant.
package store

import (
	"context"
	"embed"
	"io/fs"
	"time"

	"github.com/doorward/doorward/pkg/counter"
	"github.com/doorward/doorward/pkg/customdata/customdatastore"
	"github.com/doorward/doorward/pkg/events/outbox"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/secure"
)

//go:embed migrations/*.sql
var files embed.FS

// Migrations makes the service's tables.
func Migrations() fs.FS { return pg.Embedded(files) }

// Config says where the service's data is and how its tables are made. Parts of
// text are found by pg_trgm, within a directory by btree_gin.
func Config(url secure.Secret) pg.Config {
	return pg.Config{
		URL: url, Schema: "directory", Migrations: []fs.FS{outbox.Migrations(), counter.Migrations(), customdatastore.Migrations(), Migrations()},
		Extensions: []string{"pg_trgm", "btree_gin"},
		Placements: map[string]pg.Placement{"tenants": pg.OnBoth, "login_names": pg.Derived, "sign_ups": pg.OnMain},
	}
}

// Store reads.
type Store struct {
	pg.Databases
	db         *pg.DB
	outbox     *outbox.Outbox
	access     *pg.Cache[Access]
	accessFeed *pg.Feed
}

// New makes the store of the service.
func New(db *pg.DB, now func() time.Time) *Store {
	return &Store{
		Databases: db, db: db, outbox: outbox.New(db, "directory", now),
		access:     pg.NewCacheWithin(db, pg.FreshBounds(accessCacheSize), "directory.access", accessChannel, accessQuery, Access.directory),
		accessFeed: pg.NewFeed(db, accessChannel),
	}
}

// Outbox is what the relay empties.
func (s *Store) Outbox() *outbox.Outbox { return s.outbox }

// Tx writes. Its Emit commits an event together with the rows.
type Tx struct {
	*outbox.Tx
	counter.Counters
	access *pg.Cache[Access]
}

// Tx runs fn in a transaction. RecentAccess returns what it changed at once.
func (s *Store) Tx(ctx context.Context, fn func(*Tx) error) error {
	return s.outbox.InTx(ctx, func(tx *outbox.Tx) error { return fn(&Tx{tx, counter.In(tx), s.access}) })
}

// changesAccess notes that the Access of an account, or of the accounts of a directory,
// is different after the transaction.
func (tx *Tx) changesAccess(tenant, of id.ID) {
	tx.access.InvalidateAfter(tx, id.Ref{Tenant: tenant, ID: of})
}
