// Package seed fills a directory with generated accounts, for measurements. It
// writes to the service's tables by COPY, which is a hundred times as fast as
// the interface; the rows are those that the service would have written.
package seed

import (
	"context"
	"fmt"
	"time"

	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/directory/store"
)

// batch is how many accounts are copied at once, and many are so many that it
// is faster to make the indexes again than to add to them.
const (
	batch = 5000
	many  = 10_000
)

// Seeder is connected to the database of a deployment.
type Seeder struct {
	db    *pg.DB
	store *store.Store
	now   time.Time
}

// Open connects to the database of a deployment, whose service has made its
// tables. The accounts' times lie before now.
func Open(ctx context.Context, url secure.Secret, now time.Time) (*Seeder, error) {
	db, err := pg.Open(ctx, pg.Config{URL: url, Schema: "directory", MaxConns: 2})
	if err != nil {
		return nil, fmt.Errorf("connect to the directory service's database: %w", err)
	}
	return &Seeder{db: db, store: store.New(db, func() time.Time { return now }), now: now}, nil
}

// Close ends the connections.
func (s *Seeder) Close() { s.db.Close() }

// Fill adds count generated accounts to a directory that has none of them yet,
// all or none, and tells how many there are after each batch. Directories that
// are filled hold the same Planted accounts beside others. While many are
// added nobody else can use the tables.
func (s *Seeder) Fill(ctx context.Context, tenant, directory id.ID, count int, tell func(done int)) error {
	batches := func(yield func([]store.Loaded) bool) {
		for from := 0; from < count; from += batch {
			accounts := make([]store.Loaded, min(batch, count-from))
			for i := range accounts {
				accounts[i] = account(tenant, directory, from+i, count, s.now)
			}
			if !yield(accounts) {
				return
			}
			tell(from + len(accounts))
		}
	}
	if err := s.store.Load(ctx, tenant, directory, count > many, batches); err != nil {
		return fmt.Errorf("load the accounts: %w", err)
	}
	return nil
}

// Settle brings the tables to the state in which they would be had their rows
// come in the course of time.
func (s *Seeder) Settle(ctx context.Context) error {
	if err := s.store.Settle(ctx); err != nil {
		return fmt.Errorf("vacuum the tables: %w", err)
	}
	return nil
}
