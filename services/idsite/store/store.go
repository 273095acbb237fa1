// Package store holds all SQL of the idsite service, one file per noun. Store
// reads; Tx writes. Every query names its tenant.
package store

import (
	"context"
	"embed"
	"io/fs"

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
	return pg.Config{URL: url, Schema: "idsite", Migrations: []fs.FS{Migrations()}}
}

// Store reads.
type Store struct {
	purgesql.Purger
	db *pg.DB
}

// New makes the store of the service.
func New(db *pg.DB) *Store { return &Store{purgesql.NewPurger(db), db} }

// Tx writes.
type Tx struct{ *pg.Tx }

// Tx runs fn in a transaction.
func (s *Store) Tx(ctx context.Context, fn func(*Tx) error) error {
	return s.db.InTx(ctx, func(tx *pg.Tx) error { return fn(&Tx{tx}) })
}
