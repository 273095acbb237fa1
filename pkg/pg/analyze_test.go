package pg_test

import (
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/worktest"
)

func TestATableThatGrowsHasStatistics(t *testing.T) {
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
