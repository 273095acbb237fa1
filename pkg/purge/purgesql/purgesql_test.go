package purgesql_test

import (
	"context"
	"io/fs"
	"testing"
	"testing/fstest"
	"time"

	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/pg/pgtest"
	"github.com/doorward/doorward/pkg/purge/purgesql"
	"github.com/doorward/doorward/pkg/secure"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func config(url secure.Secret) pg.Config {
	const tables = `-- +goose Up
CREATE TABLE tickets (id int PRIMARY KEY, kept boolean NOT NULL DEFAULT false, ends_at timestamptz NOT NULL);
CREATE INDEX tickets_ended ON tickets (ends_at);`
	return pg.Config{URL: url, Schema: "tickets", Migrations: []fs.FS{
		fstest.MapFS{"20261127000001_tickets.sql": {Data: []byte(tables)}},
	}}
}

var (
	began   = time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	tickets = purgesql.Rows{Table: "tickets", Time: "ends_at", Where: "NOT kept"}
)

// addTickets adds tickets, one of which ends in each interval.
func addTickets(t *testing.T, db *pg.DB, count int, each string) {
	t.Helper()
	if _, err := pg.Exec(t.Context(), db, `INSERT INTO tickets (id, ends_at)
		SELECT n, $1::timestamptz + n * $2::interval FROM generate_series(1, $3::int) n`, began, each, count); err != nil {
		t.Fatal(err)
	}
	if _, err := pg.Exec(t.Context(), db, `ANALYZE tickets`); err != nil {
		t.Fatal(err)
	}
}

func wantTickets(t *testing.T, db *pg.DB, want int) {
	t.Helper()
	if n, err := pg.Value[int](t.Context(), db, `SELECT count(*) FROM tickets`); err != nil || n != want {
		t.Errorf("%d tickets are left, %v; want %d", n, err, want)
	}
}

// The rows of an age are deleted in transactions of bounded size, which read no more rows than they
// delete, the last as the first.
func TestExpiredRowsAreDeletedInSlices(t *testing.T) {
	t.Parallel()
	const many = 50_000
	db := pgtest.Open(t, config)
	addTickets(t, db, many, "1 ms")
	if _, err := pg.Exec(t.Context(), db, `UPDATE tickets SET kept = true WHERE id = 7`); err != nil {
		t.Fatal(err)
	}
	transactions := 0
	inTx := func(ctx context.Context, fn func(*pg.Tx) error) error {
		transactions++
		return db.InTx(ctx, func(tx *pg.Tx) error {
			const touched = `SELECT (seq_tup_read + idx_tup_fetch)::bigint AS read, n_tup_del::bigint AS deleted
				FROM pg_stat_xact_user_tables WHERE relid = 'tickets'::regclass`
			type counts struct{ Read, Deleted int64 }
			before, err := pg.One[counts](ctx, tx, touched)
			if err != nil {
				return err
			}
			if err := fn(tx); err != nil {
				return err
			}
			after, err := pg.One[counts](ctx, tx, touched)
			deleted, read := after.Deleted-before.Deleted, after.Read-before.Read
			if deleted > purgesql.SliceSize || read > 3*purgesql.SliceSize {
				t.Errorf("the transaction %d deletes %d rows and reads %d", transactions, deleted, read)
			}
			return err
		})
	}
	before := began.Add(many * time.Millisecond) // at which the last one ends
	if n, err := purgesql.Expired(t.Context(), inTx, tickets, before); err != nil || n != many-2 {
		t.Errorf("%d tickets were purged, %v; want %d", n, err, many-2)
	}
	if transactions < many/purgesql.SliceSize {
		t.Errorf("there were %d transactions", transactions)
	}
	wantTickets(t, db, 2)
}

func TestRowsOfOneTimeAreASlice(t *testing.T) {
	t.Parallel()
	db := pgtest.Open(t, config)
	addTickets(t, db, 3*purgesql.SliceSize, "0 ms")
	if n, err := purgesql.Expired(t.Context(), db.InTx, tickets, began.Add(1)); err != nil || n != 0 {
		t.Errorf("%d tickets were purged before a time that PostgreSQL cannot tell from theirs, %v", n, err)
	}
	n, err := purgesql.Expired(t.Context(), db.InTx, tickets, began.Add(time.Microsecond))
	if err != nil || n != 3*purgesql.SliceSize {
		t.Errorf("%d tickets were purged, %v", n, err)
	}
	wantTickets(t, db, 0)
}

// Where a process purges a schema, another one leaves it alone.
func TestOneProcessPurgesAtATime(t *testing.T) {
	t.Parallel()
	db := pgtest.Open(t, config)
	addTickets(t, db, 10, "1 ms")
	err := db.InTx(t.Context(), func(tx *pg.Tx) error {
		if free, err := purgesql.Lock(t.Context(), tx); err != nil || !free {
			t.Errorf("the lock is free: %v, %v", free, err)
		}
		if n, err := purgesql.Expired(t.Context(), db.InTx, tickets, began.Add(time.Hour)); err != nil || n != 0 {
			t.Errorf("while another process purges, %d tickets were purged, %v", n, err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if n, err := purgesql.Expired(t.Context(), db.InTx, tickets, began.Add(time.Hour)); err != nil || n != 10 {
		t.Errorf("after the other process has purged, %d tickets were purged, %v", n, err)
	}
}
