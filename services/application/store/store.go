// Package store holds all SQL of the application service, one file per noun.
// Store reads; Tx writes and emits. Every query names its tenant.
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
	"github.com/doorward/doorward/pkg/secure"
)

//go:embed migrations/*.sql
var files embed.FS

// Migrations makes the service's tables.
func Migrations() fs.FS { return pg.Embedded(files) }

// Config says where the service's data is and how its tables are made.
func Config(url secure.Secret) pg.Config {
	return pg.Config{
		URL: url, Schema: "application", Migrations: []fs.FS{outbox.Migrations(), customdatastore.Migrations(), Migrations()},
		Placements: map[string]pg.Placement{"dns_label_routes": pg.OnMain},
	}
}

// Store reads.
type Store struct {
	pg.Databases
	db             *pg.DB
	outbox         *outbox.Outbox
	loginOrders    *pg.Cache[loginOrderRow]
	loginOrderFeed *pg.Feed

	applications *pg.Cache[applicationapi.Application]
	labels       *cache.Cache[string, id.Ref]
}

// loginOrderCacheSize is in stores and applications.
const loginOrderCacheSize = 50_000

// New makes the store of the service.
func New(db *pg.DB, now func() time.Time) *Store {
	return &Store{
		Databases: db, db: db, outbox: outbox.New(db, "application", now),
		loginOrders: pg.NewCacheWithin(db, pg.FreshBounds(loginOrderCacheSize), "application.reach", loginOrderChannel, loginOrderQuery,
			loginOrderRow.organization),
		loginOrderFeed: pg.NewFeed(db, loginOrderChannel),
		// A change of an application or of its mappings, of which a row holds the
		// default stores, is one of its login order.
		applications: pg.NewCache[applicationapi.Application](db, "application.applications", loginOrderChannel, applicationQuery, nil),
		labels:       newLabelCache(now),
	}
}

// Outbox is what the relay empties.
func (s *Store) Outbox() *outbox.Outbox { return s.outbox }

// Tx writes. Its Emit commits an event together with the rows.
type Tx struct {
	*outbox.Tx
	store *Store
}

// Tx runs fn in a transaction. CachedLoginOrder and ApplicationByDNSLabel return what it
// changed at once.
func (s *Store) Tx(ctx context.Context, fn func(*Tx) error) error {
	return s.outbox.InTx(ctx, func(tx *outbox.Tx) error { return fn(&Tx{tx, s}) })
}

// changes notes that a LoginOrder is different after the transaction: that of an
// application, or those through an organization.
func (tx *Tx) changes(tenant id.ID, owners ...id.ID) {
	for _, owner := range owners {
		tx.store.loginOrders.InvalidateAfter(tx, id.Ref{Tenant: tenant, ID: owner})
		tx.store.applications.InvalidateAfter(tx, id.Ref{Tenant: tenant, ID: owner})
	}
}
