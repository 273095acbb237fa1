package pg_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
)

func TestSlowQueriesOfATenantLeaveConnectionsToOthers(t *testing.T) {
	db, _ := open(t) // a pool of 8
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	as := func() context.Context { return caller.Into(ctx, caller.Caller{Tenant: id.New(time.Now())}) }
	noisy, quiet := as(), as()

	locked, unlock := make(chan struct{}), make(chan struct{})
	var work sync.WaitGroup
	work.Go(func() { // of no tenant, as background work is
		err := db.InTx(ctx, func(tx *pg.Tx) error {
			_, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock(7)`)
			close(locked)
			<-unlock
			return err
		})
		if err != nil {
			t.Error(err)
		}
	})
	<-locked
	const slow = `SELECT pg_advisory_xact_lock_shared(7)::text`
	for range 7 {
		work.Go(func() {
			if _, err := pg.Value[string](noisy, db, slow); err != nil {
				t.Error(err)
			}
		})
		work.Go(func() {
			if _, err := pg.Exec(noisy, db, slow); err != nil {
				t.Error(err)
			}
		})
		work.Go(func() {
			err := db.InTx(noisy, func(tx *pg.Tx) error {
				_, err := pg.Value[string](noisy, tx, slow)
				return err
			})
			if err != nil {
				t.Error(err)
			}
		})
		work.Go(func() {
			var batch pg.Batch
			batch.Queue(slow)
			if err := pg.ExecBatch(noisy, db, &batch); err != nil {
				t.Error(err)
			}
		})
	}
	for waiting := int64(0); waiting < 6; { // three quarters of the pool
		var err error
		if waiting, err = pg.Value[int64](quiet, db, `SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted`); err != nil {
			t.Fatal(err)
		}
	}
	for range 20 {
		if _, err := pg.Value[int64](quiet, db, `SELECT count(*) FROM notes`); err != nil {
			t.Fatalf("another tenant's query: %v", err)
		}
	}
	if used := db.Stat().AcquiredConns(); used != 7 {
		t.Errorf("%d connections are in use, want the lock's and six of the tenant", used)
	}
	close(unlock)
	work.Wait()
}
