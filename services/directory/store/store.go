// Package store holds all SQL of the directory service, one file per noun.
// Store reads; Tx writes and emits. Every query names its tenant.
package store

import (
	"context"
	"embed"
	"io/fs"
	"time"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/backuprecord"
	"github.com/doorward/doorward/pkg/counter"
	"github.com/doorward/doorward/pkg/customdata/customdatastore"
	"github.com/doorward/doorward/pkg/events/outbox"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/operatorlog"
	"github.com/doorward/doorward/pkg/pg"
	pgcache "github.com/doorward/doorward/pkg/pg/cache"
	"github.com/doorward/doorward/pkg/purge/purgesql"
	"github.com/doorward/doorward/pkg/secure"
)

//go:embed migrations/*.sql
var files embed.FS

// Migrations are the SQL files that create the service's tables.
func Migrations() fs.FS { return pg.Embedded(files) }

// Config says where the database of the service is, and how its tables are created. The extension
// pg_trgm finds parts of texts, btree_gin restricts that to a directory.
func Config(url secure.Secret) pg.Config {
	return pg.Config{
		URL: url, Schema: "directory", Extensions: []string{"pg_trgm", "btree_gin"},
		Migrations: []fs.FS{outbox.Migrations(), counter.Migrations(), operatorlog.Migrations(),
			customdatastore.Migrations(), backuprecord.Migrations(), Migrations()},
	}
}

// Store reads.
type Store struct {
	purgesql.Purger
	db         *pg.DB
	outbox     *outbox.Outbox
	access     *pgcache.Cache[Access]
	accessFeed *pgcache.Feed
}

// New makes the store of the service.
func New(db *pg.DB, now func() time.Time) *Store {
	return &Store{
		Purger: purgesql.NewPurger(db), db: db, outbox: outbox.New(db, "directory", now),
		access: pgcache.NewWithin(db, pgcache.FreshBounds(accessCacheSize), "directory.access", accessChannel,
			accessQuery, Access.directory),
		accessFeed: pgcache.NewFeed(db, accessChannel),
	}
}

// DB is the database, for packages with SQL about more than one tenant.
func (s *Store) DB() *pg.DB { return s.db }

// Outbox has the events that the relay sends to Kafka.
func (s *Store) Outbox() *outbox.Outbox { return s.outbox }

// Tx writes, and emits events: rows and events are committed together.
type Tx struct {
	*outbox.Tx
	counter.Counters
	access       *pgcache.Cache[Access]
	mixedScripts []directoryapi.Account // mixedscript.go
}

// Tx runs fn in a transaction. Access returns the changes of this transaction at once in
// this process.
func (s *Store) Tx(ctx context.Context, fn func(*Tx) error) error {
	var tx *Tx
	err := s.outbox.InTx(ctx, func(inner *outbox.Tx) error {
		tx = &Tx{Tx: inner, Counters: counter.In(inner), access: s.access}
		return fn(tx)
	})
	if err != nil {
		return err
	}
	tx.warnOfMixedScripts(ctx)
	return nil
}

// invalidateAccess invalidates the cached Access of an account, or of the accounts of a directory, and
// reports that, or the change of a group or an agent, to other services (AccessChanges), when the
// transaction commits. Every change of what Access has calls it, and every change of a membership, of the
// status of a group, and of an agent's keys; other changes do not, since that would cost the validations
// of tokens.
func (tx *Tx) invalidateAccess(tenant, of id.ID) {
	tx.access.InvalidateAfter(tx, id.Ref{Tenant: tenant, ID: of})
}
