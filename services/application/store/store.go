// Package store has all SQL of the application service, one file per noun. Store reads; Tx
// writes and emits events. Every query names its tenant, but for the look-up of a DNS label and
// the purge of expired counters.
package store

import (
	"context"
	"embed"
	"io/fs"
	"time"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/cache"
	"github.com/doorward/doorward/pkg/customdata/customdatastore"
	"github.com/doorward/doorward/pkg/events/outbox"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
	pgcache "github.com/doorward/doorward/pkg/pg/cache"
	"github.com/doorward/doorward/pkg/purge/purgesql"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/pkg/usage"
)

//go:embed migrations/*.sql
var files embed.FS

// Migrations returns the migrations of the service's tables.
func Migrations() fs.FS { return pg.Embedded(files) }

// Config returns the address of the service's database, its schema and its migrations.
func Config(url secure.Secret) pg.Config {
	return pg.Config{
		URL: url, Schema: "application",
		Migrations: []fs.FS{outbox.Migrations(), customdatastore.Migrations(), usage.Migrations(), Migrations()},
	}
}

// Store reads the tables of the service.
type Store struct {
	purgesql.Purger
	Usage          *usage.Counter
	db             *pg.DB
	outbox         *outbox.Outbox
	loginOrders    *pgcache.Cache[loginOrderRow]
	loginOrderFeed *pgcache.Feed

	applications *pgcache.Cache[applicationapi.Application]
	labels       *cache.Cache[string, id.Ref]
}

// loginOrderCacheSize counts applications and the account stores of their login orders.
const loginOrderCacheSize = 50_000

// New returns the store of the service.
func New(db *pg.DB, now func() time.Time) *Store {
	return &Store{
		Purger: purgesql.NewPurger(db), db: db, Usage: usage.NewCounter(db, now),
		outbox: outbox.New(db, "application", now),
		loginOrders: pgcache.NewWithin(db, pgcache.FreshBounds(loginOrderCacheSize), "application.loginOrders",
			loginOrderChannel, loginOrderQuery, loginOrderRow.dependsOn),
		loginOrderFeed: pgcache.NewFeed(db, loginOrderChannel),
		// An application has the ids of its default mappings, so that its cache entry is
		// invalidated with its login order, too.
		applications: pgcache.New[applicationapi.Application](db, "application.applications",
			"application.applications",
			applicationQuery, nil),
		labels: newLabelCache(now),
	}
}

// Outbox runs the service's transactions; the relay sends its events to Kafka.
func (s *Store) Outbox() *outbox.Outbox { return s.outbox }

// Tx writes in a transaction. Its Emit commits an event together with the rows.
type Tx struct {
	*outbox.Tx
	store *Store
}

// Tx runs fn in a transaction. After the commit, CachedLoginOrder and ApplicationByDNSLabel of
// this process return the changes.
func (s *Store) Tx(ctx context.Context, fn func(*Tx) error) error {
	return s.outbox.InTx(ctx, func(tx *outbox.Tx) error { return fn(&Tx{tx, s}) })
}

// invalidateLoginOrders removes, when the transaction commits, the login orders of applications,
// or those that have account stores of organizations, and the applications from the caches of
// all processes. Every change of what a login order has calls it; other changes of an application do
// not, since that would cost the validations of its tokens.
func (tx *Tx) invalidateLoginOrders(tenant id.ID, owners ...id.ID) {
	for _, owner := range owners {
		tx.store.loginOrders.InvalidateAfter(tx, id.Ref{Tenant: tenant, ID: owner})
		tx.store.applications.InvalidateAfter(tx, id.Ref{Tenant: tenant, ID: owner})
	}
}
