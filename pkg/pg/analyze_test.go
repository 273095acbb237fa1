package pg_test

import (
	"errors"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/worktest"
)

func TestATableThatGrowsHasStatistics(t *testing.T) {
	t.Parallel()
	db, _ := open(t)
	worktest.Start(t, db.Analyze)
	for rows, more := 100, 100; rows <= 400; rows, more = 2*rows, rows {
		// One statement, so that there is nothing to gather in between. PostgreSQL counts
		// its rows at once, not up to 10 s later.
		if _, err := pg.Exec(t.Context(), db, `INSERT INTO notes (tenant_id, id, text)
			SELECT gen_random_uuid(), gen_random_uuid(), '' FROM generate_series(1, $1::integer)
			RETURNING pg_stat_force_next_flush()`, more); err != nil {
			t.Fatal(err)
		}
		deadline, tick := time.NewTimer(30*time.Second), time.NewTicker(20*time.Millisecond)
		for known := -1; known != rows; {
			var err error
			if known, err = pg.Value[int](t.Context(), db, `SELECT reltuples::integer FROM pg_class WHERE oid = 'notes'::regclass`); err != nil {
				t.Fatal(err)
			}
			select {
			case <-tick.C:
			case <-deadline.C:
				t.Fatalf("the table is believed to have %d rows, and has %d", known, rows)
			}
		}
		deadline.Stop()
		tick.Stop()
	}
}

// What changes nothing, as the workers do that look for work, wakes nobody who waits for
// writes.
func TestOnlyWritesAreCounted(t *testing.T) {
	t.Parallel()
	db, _ := open(t)
	const nothing = `DELETE FROM notes WHERE tenant_id = $1`
	none := id.New(time.Now())
	insert := func(tx *pg.Tx) error {
		_, err := pg.Exec(t.Context(), tx, `INSERT INTO notes (tenant_id, id, text) VALUES ($1, $1, '')`, none)
		return err
	}
	errStop := errors.New("roll back")
	for _, c := range []struct {
		what string
		do   func() error
		want int64
	}{
		{"a statement that changes no row", func() error { _, err := pg.Exec(t.Context(), db, nothing, none); return err }, 0},
		{"a transaction of one", func() error {
			return db.InTx(t.Context(), func(tx *pg.Tx) error { _, err := pg.Exec(t.Context(), tx, nothing, none); return err })
		}, 0},
		{"a transaction that is rolled back", func() error {
			err := db.InTx(t.Context(), func(tx *pg.Tx) error { return errors.Join(insert(tx), errStop) })
			if errors.Is(err, errStop) {
				err = nil
			}
			return err
		}, 0},
		{"a transaction that inserts", func() error { return db.InTx(t.Context(), insert) }, 1},
		{"a statement that deletes", func() error { _, err := pg.Exec(t.Context(), db, nothing, none); return err }, 1},
		{"a queued statement", func() error {
			return db.InTx(t.Context(), func(tx *pg.Tx) error {
				tx.Queue(`INSERT INTO notes (tenant_id, id, text) VALUES ($1, $1, '')`, none)
				return nil
			})
		}, 1},
		{"queued statements", func() error {
			return db.InTx(t.Context(), func(tx *pg.Tx) error {
				tx.Queue(nothing, none)
				tx.Queue(nothing, none)
				return nil
			})
		}, 1},
		{"a query, which may write", func() error {
			return db.InTx(t.Context(), func(tx *pg.Tx) error { _, err := pg.Value[int](t.Context(), tx, `SELECT 1`); return err })
		}, 1},
	} {
		before := pg.Writes(db)
		if err := c.do(); err != nil {
			t.Fatalf("%s: %v", c.what, err)
		}
		if got := pg.Writes(db) - before; got != c.want {
			t.Errorf("%s counts as %d writes, want %d", c.what, got, c.want)
		}
	}
}
