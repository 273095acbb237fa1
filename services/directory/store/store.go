// Package store holds all SQL of the directory service, one file per noun.
// Store reads; Tx writes and emits. Every query names its tenant.
package store

import (
	"context"
	"embed"
	"io/fs"
	"time"

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
		URL: url, Schema: "directory", Migrations: []fs.FS{outbox.Migrations(), customdatastore.Migrations(), Migrations()},
		Extensions: []string{"pg_trgm", "btree_gin"},
	}
}

// Store reads.
type Store struct {
	db             *pg.DB
	outbox         *outbox.Outbox
	providers      *pg.Cache[AccountProvider]
	loginProviders *pg.Cache[LoginProvider]
	access         *pg.Cache[Access]
}

// New makes the store of the service.
func New(db *pg.DB, now func() time.Time) *Store {
	s := &Store{db: db, outbox: outbox.New(db, "directory", now)}
	s.providers = pg.NewCacheOf(db, providerBounds, "directory.providers", providersChannel, s.readAccountProvider)
	s.loginProviders = pg.NewCacheWithin[LoginProvider](db, providerBounds, "directory.loginProviders", providersChannel,
		loginProviderQuery+`$2`, nil)
	s.access = pg.NewCacheWithin(db, pg.Recent(accessCacheSize), "directory.access", "directory.accounts", accessQuery, Access.directory)
	s.access.InvalidateOn(providersChannel)
	return s
}

// providersChannel is notified of changed directories and providers.
const providersChannel = "directory.providers"

// Outbox is what the relay empties.
func (s *Store) Outbox() *outbox.Outbox { return s.outbox }

// Tx writes. Its Emit commits an event together with the rows.
type Tx struct {
	*outbox.Tx
	changed  []id.Ref // directories, with what an AccountProvider is read from
	accounts []id.Ref // whose Access changed
}

// Tx runs fn in a transaction. AccountProvider, LoginProviders and RecentAccess return
// what it changed at once.
func (s *Store) Tx(ctx context.Context, fn func(*Tx) error) error {
	var tx *Tx
	defer func() {
		if tx != nil {
			for _, ref := range tx.changed {
				s.providers.Forget(ref)
				s.loginProviders.Forget(ref)
				s.access.Forget(ref)
			}
			for _, ref := range tx.accounts {
				s.access.Forget(ref)
			}
		}
	}()
	return s.outbox.InTx(ctx, func(inner *outbox.Tx) error {
		tx = &Tx{Tx: inner}
		return fn(tx)
	})
}

// changes notes that the AccountProvider of a directory is different after the
// transaction.
func (tx *Tx) changes(tenant, directory id.ID) {
	tx.changed = append(tx.changed, id.Ref{Tenant: tenant, ID: directory})
}

// changesAccess notes that the Access of an account is different after the transaction.
func (tx *Tx) changesAccess(tenant, account id.ID) {
	tx.accounts = append(tx.accounts, id.Ref{Tenant: tenant, ID: account})
}
