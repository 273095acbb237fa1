package pg_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/pg/pgtest"
)

// roundTrips counts those of a pool, but for preparing statements.
type roundTrips struct {
	n     atomic.Int64
	batch []string // the statements of the last batch
}

func (r *roundTrips) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	r.n.Add(1)
	return ctx
}

func (r *roundTrips) TraceBatchStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceBatchStartData) context.Context {
	r.n.Add(1)
	r.batch = nil
	for _, query := range data.Batch.QueuedQueries {
		r.batch = append(r.batch, query.SQL)
	}
	return ctx
}
func (r *roundTrips) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData)     {}
func (r *roundTrips) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}
func (r *roundTrips) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData)     {}

func counted(t *testing.T) (*pg.DB, *roundTrips) {
	t.Helper()
	db, _ := open(t)
	count := &roundTrips{}
	config := db.Config()
	config.ConnConfig.Tracer = count
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pg.FromPool(pool), count
}

var errOfFunction = errors.New("the function failed")

const (
	insertNote    = `INSERT INTO notes (tenant_id, id, text) VALUES ($1, $2, $3)`
	countNotes    = `SELECT count(*) FROM notes WHERE tenant_id = $1`
	returningNote = ` RETURNING tenant_id, id, text`
	renameNote    = `UPDATE notes SET text = 'new' WHERE tenant_id = $1 AND id = $2`
)

func TestWhatATransactionTakes(t *testing.T) {
	t.Parallel()
	db, count := counted(t)
	ctx := t.Context()
	var returned []note
	for _, c := range []struct {
		what       string
		fn         func(tx *pg.Tx, tenant id.ID) error
		roundTrips int64
		err        error
		notes      int // afterwards
		returns    bool
	}{
		{"nothing", func(*pg.Tx, id.ID) error { return nil }, 0, nil, 0, false},
		{"one statement", func(tx *pg.Tx, tenant id.ID) error {
			tx.Queue(insertNote, tenant, tenant, "a")
			return nil
		}, 1, nil, 1, false},
		{"three statements", func(tx *pg.Tx, tenant id.ID) error {
			for _, text := range []string{"a", "b", "c"} {
				tx.Queue(insertNote, tenant, id.New(time.Now()), text)
			}
			return nil
		}, 1, nil, 3, false},
		{"a statement that changes nothing and has to, alone", func(tx *pg.Tx, tenant id.ID) error {
			tx.QueueChange(renameNote, tenant, tenant)
			return nil
		}, 1, apierr.NotFound, 0, false},
		{"a statement that changes nothing and has to, beside another", func(tx *pg.Tx, tenant id.ID) error {
			tx.Queue(insertNote, tenant, id.New(time.Now()), "a")
			tx.QueueChange(renameNote, tenant, tenant)
			return nil
		}, 2, apierr.NotFound, 0, false}, // with the rollback
		{"a statement that changes a row and has to, beside another", func(tx *pg.Tx, tenant id.ID) error {
			tx.Queue(insertNote, tenant, tenant, "a")
			tx.QueueChange(renameNote, tenant, tenant)
			return nil
		}, 2, nil, 1, false},
		{"two statements of which the second fails", func(tx *pg.Tx, tenant id.ID) error {
			tx.Queue(insertNote, tenant, id.New(time.Now()), "a")
			tx.Queue(insertNote, tenant, id.New(time.Now()), "a")
			return nil
		}, 2, apierr.Exists, 0, false}, // with the rollback
		{"statements before and after a query, which sees the former", func(tx *pg.Tx, tenant id.ID) error {
			tx.Queue(insertNote, tenant, id.New(time.Now()), "a")
			if n, err := pg.Value[int](ctx, tx, countNotes, tenant); err != nil || n != 1 {
				t.Errorf("the query counts %d, %v", n, err)
			}
			tx.Queue(insertNote, tenant, id.New(time.Now()), "b")
			return nil
		}, 2, nil, 2, false},
		{"a query of the values of this time", func(tx *pg.Tx, tenant id.ID) error {
			tx.Queue(insertNote, tenant, id.New(time.Now()), "a")
			if n, err := pg.Value[int](ctx, tx, countNotes, pg.CustomPlan, tenant); err != nil || n != 1 {
				t.Errorf("the query counts %d, %v", n, err)
			}
			return nil
		}, 3, nil, 1, false},
		{"a query after a statement that fails", func(tx *pg.Tx, tenant id.ID) error {
			tx.QueueChange(renameNote, tenant, tenant)
			_, err := pg.Value[int](ctx, tx, countNotes, tenant)
			return err
		}, 2, apierr.NotFound, 0, false},
		{"a statement whose rows are read, alone", func(tx *pg.Tx, tenant id.ID) error {
			pg.QueueReturning(tx, &returned, insertNote+returningNote, tenant, tenant, "a")
			return nil
		}, 1, nil, 1, true},
		{"one beside another", func(tx *pg.Tx, tenant id.ID) error {
			pg.QueueReturning(tx, &returned, insertNote+returningNote, tenant, tenant, "a")
			tx.Queue(renameNote, tenant, tenant)
			return nil
		}, 1, nil, 1, true},
		{"one after which the transaction fails", func(tx *pg.Tx, tenant id.ID) error {
			pg.QueueReturning(tx, &returned, insertNote+returningNote, tenant, tenant, "a")
			tx.Queue(insertNote, tenant, tenant, "b")
			return nil
		}, 2, apierr.Exists, 0, true}, // with the rollback
		{"statements whose outcome decides", func(tx *pg.Tx, tenant id.ID) error {
			for _, text := range []string{"a", "b"} {
				if n, err := pg.Exec(ctx, tx, insertNote, tenant, id.New(time.Now()), text); err != nil || n != 1 {
					t.Errorf("the statement wrote %d rows, %v", n, err)
				}
			}
			return nil
		}, 3, nil, 2, false},
		{"a batch after what is queued", func(tx *pg.Tx, tenant id.ID) error {
			tx.Queue(insertNote, tenant, tenant, "a")
			var batch pg.Batch
			var found []note
			pg.QueueAll(&batch, &found, `SELECT tenant_id, id, text FROM notes WHERE tenant_id = $1 AND id = $2`, tenant, tenant)
			if err := pg.ExecBatch(ctx, tx, &batch); err != nil || len(found) != 1 {
				t.Errorf("the batch returned %v and read %v", found, err)
			}
			return nil
		}, 2, nil, 1, false},
		{"an error of the function", func(tx *pg.Tx, tenant id.ID) error {
			tx.Queue(insertNote, tenant, tenant, "a")
			return errOfFunction
		}, 0, errOfFunction, 0, false},
		{"an error of the function after a query", func(tx *pg.Tx, tenant id.ID) error {
			tx.Queue(insertNote, tenant, tenant, "a")
			_, _ = pg.Value[int](ctx, tx, countNotes, tenant)
			return errOfFunction
		}, 2, errOfFunction, 0, false},
		{"a failure that the function does not return", func(tx *pg.Tx, tenant id.ID) error {
			_, _ = pg.Exec(ctx, tx, `SELECT 1/0`)
			tx.Queue(insertNote, tenant, tenant, "a")
			return nil
		}, 3, nil, 0, false},
	} {
		t.Run(c.what, func(t *testing.T) {
			tenant, before := id.New(time.Now()), count.n.Load()
			err := db.InTx(ctx, func(tx *pg.Tx) error { return c.fn(tx, tenant) })
			if c.what == "a failure that the function does not return" {
				if err == nil {
					t.Error("the transaction commits")
				}
			} else if !errors.Is(err, c.err) {
				t.Errorf("the transaction returned %v, want %v", err, c.err)
			}
			if n := count.n.Load() - before; n != c.roundTrips {
				t.Errorf("the transaction takes %d round trips, want %d", n, c.roundTrips)
			}
			if len(returned) > 0 && returned[0].TenantID != tenant || (len(returned) > 0) != c.returns {
				t.Errorf("the transaction returned the rows %v", returned)
			}
			returned = nil
			if n, err := pg.Value[int](ctx, db, countNotes, tenant); err != nil || n != c.notes {
				t.Errorf("afterwards there are %d notes, %v; want %d", n, err, c.notes)
			}
		})
	}
	if idle, all := db.Stat().IdleConns(), db.Stat().TotalConns(); idle != all {
		t.Errorf("%d of %d connections are idle", idle, all)
	}
}

// A pooler or an engine for which a batch is no transaction would commit the first of these.
func TestStatementsThatAreSentAtOnceAreATransaction(t *testing.T) {
	t.Parallel()
	db, count := counted(t)
	tenant := id.New(time.Now())
	if err := db.InTx(t.Context(), func(tx *pg.Tx) error {
		tx.Queue(insertNote, tenant, tenant, "a")
		tx.Queue(renameNote, tenant, tenant)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if want := []string{"BEGIN", insertNote, renameNote, "COMMIT"}; !slices.Equal(count.batch, want) {
		t.Errorf("the batch is %q, want %q", count.batch, want)
	}
}

func TestAnErrorAtTheCommitIsThatOfTheTransaction(t *testing.T) {
	t.Parallel()
	db, _ := open(t)
	if _, err := pg.Exec(t.Context(), db, `ALTER TABLE notes ADD UNIQUE (text) DEFERRABLE INITIALLY DEFERRED`); err != nil {
		t.Fatal(err)
	}
	for n := range 3 { // statements
		tenant := id.New(time.Now())
		err := db.InTx(t.Context(), func(tx *pg.Tx) error {
			for range n {
				tx.Queue(insertNote, id.New(time.Now()), tenant, "same")
			}
			return nil
		})
		if failed := n > 0; errors.Is(err, apierr.Exists) != (n == 2) || err != nil && !failed {
			t.Errorf("%d notes of one text: %v", n, err)
		}
		_, _ = pg.Exec(t.Context(), db, `DELETE FROM notes`)
	}
}

func TestATransactionAfterAllConnectionsWereCut(t *testing.T) {
	t.Parallel()
	db, url := open(t)
	tenant := id.New(time.Now())
	for n := range 20 {
		pgtest.CutConnections(t, url)
		if err := db.InTx(t.Context(), func(tx *pg.Tx) error {
			tx.Queue(insertNote, tenant, id.New(time.Now()), string(rune('a'+n)))
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		pgtest.CutConnections(t, url)
		if got, err := pg.Value[int](t.Context(), db, countNotes, tenant); err != nil || got != n+1 {
			t.Fatalf("the table has %d notes, %v", got, err)
		}
	}
}

// The ratio of the two is the price of a transaction.
func BenchmarkAStatement(b *testing.B) {
	url := pgtest.New(b, nil)
	db, err := pg.Open(b.Context(), config(url))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(db.Close)
	tenant := id.New(time.Now())
	var bare, inTx time.Duration
	for b.Loop() {
		began := time.Now()
		one := id.New(began)
		if _, err := pg.Exec(b.Context(), db, insertNote, tenant, one, one.String()); err != nil {
			b.Fatal(err)
		}
		middle := time.Now()
		one = id.New(middle)
		if err := db.InTx(b.Context(), func(tx *pg.Tx) error {
			tx.Queue(insertNote, tenant, one, one.String())
			return nil
		}); err != nil {
			b.Fatal(err)
		}
		bare, inTx = bare+middle.Sub(began), inTx+time.Since(middle)
	}
	b.ReportMetric(float64(bare.Nanoseconds())/float64(b.N), "ns/bare")
	b.ReportMetric(float64(inTx)/float64(bare), "tx/bare")
}
