package pg

import (
	"context"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/doorward/doorward/pkg/apierr"
)

// CustomPlan is passed as the first argument of a query that PostgreSQL must plan for the values of
// each execution (custom plan), because a generic plan of a prepared statement could be slow.
const CustomPlan = pgx.QueryExecModeCacheDescribe

// Querier is a pool or a transaction.
type Querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

// One returns the single row of a query as a struct, by the names of its columns. It returns
// apierr.NotFound if there is no row.
func One[T any](ctx context.Context, q Querier, sql string, args ...any) (T, error) {
	return single(ctx, q, pgx.RowToStructByName[T], sql, args)
}

// Value returns the single value of a query. It returns apierr.NotFound if there is no row.
func Value[T any](ctx context.Context, q Querier, sql string, args ...any) (T, error) {
	return single(ctx, q, pgx.RowTo[T], sql, args)
}

func single[T any](ctx context.Context, q Querier, read pgx.RowToFunc[T], sql string, args []any) (v T, err error) {
	rows, err := q.Query(ctx, sql, args...)
	if err != nil {
		return v, Error(err)
	}
	v, err = pgx.CollectExactlyOneRow(rows, read)
	return v, Error(err)
}

// Values returns the values of a query with one column.
func Values[T any](ctx context.Context, q Querier, sql string, args ...any) ([]T, error) {
	return all(ctx, q, pgx.RowTo[T], sql, args)
}

// All returns the rows of a query as structs, by the names of its columns.
func All[T any](ctx context.Context, q Querier, sql string, args ...any) ([]T, error) {
	return all(ctx, q, pgx.RowToStructByName[T], sql, args)
}

func all[T any](ctx context.Context, q Querier, read pgx.RowToFunc[T], sql string, args []any) (list []T, err error) {
	rows, err := q.Query(ctx, sql, args...)
	if err != nil {
		return nil, Error(err)
	}
	list, err = pgx.CollectRows(rows, read)
	return list, Error(err)
}

// Exec runs a statement and returns the number of rows that it changed.
func Exec(ctx context.Context, q Querier, sql string, args ...any) (int64, error) {
	tag, err := q.Exec(ctx, sql, args...)
	return tag.RowsAffected(), Error(err)
}

// MustChange runs a statement that must change a row. It returns apierr.NotFound if it changed none.
func MustChange(ctx context.Context, q Querier, sql string, args ...any) error {
	n, err := Exec(ctx, q, sql, args...)
	if err == nil && n == 0 {
		return apierr.NotFound
	}
	return err
}

// Batch is statements that are sent in one round trip. Outside of a transaction they may only read,
// because nothing makes them one.
type Batch = pgx.Batch

// ExecBatch runs the statements of a batch in one round trip. A statement that fails ends the batch.
func ExecBatch(ctx context.Context, q Batcher, batch *Batch) error {
	return Error(q.sendBatch(ctx, batch))
}

// Batcher is a pool or a transaction.
type Batcher interface {
	sendBatch(ctx context.Context, batch *Batch) error
}

// QueueAll adds a query to a batch, whose rows ExecBatch reads into the structs
// of into by the names of their columns.
func QueueAll[T any](batch *Batch, into *[]T, sql string, args ...any) {
	batch.Queue(sql, args...).Query(func(rows pgx.Rows) (err error) {
		*into, err = pgx.CollectRows(rows, pgx.RowToStructByName[T])
		return err
	})
}

// Query runs a query outside a transaction. The caller must close the rows, or read them to
// their end.
func (db *DB) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	tenant, err := db.tenantQuota.acquire(ctx)
	if err != nil {
		return nil, err
	}
	rows, err := db.Pool.Query(ctx, sql, args...)
	if err != nil {
		db.tenantQuota.release(tenant)
		return rows, err
	}
	return &quotaRows{Rows: rows, release: sync.OnceFunc(func() { db.tenantQuota.release(tenant) })}, nil
}

// Exec runs a statement outside a transaction.
func (db *DB) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	tenant, err := db.tenantQuota.acquire(ctx)
	if err != nil {
		return pgconn.CommandTag{}, err
	}
	defer db.tenantQuota.release(tenant)
	tag, err := db.Pool.Exec(ctx, sql, args...)
	if tag.RowsAffected() > 0 {
		db.writes.Add(1)
	}
	return tag, err
}

func (db *DB) sendBatch(ctx context.Context, batch *Batch) error {
	tenant, err := db.tenantQuota.acquire(ctx)
	if err != nil {
		return err
	}
	defer db.tenantQuota.release(tenant)
	return db.SendBatch(ctx, batch).Close()
}

// quotaRows release the quota after the last row.
type quotaRows struct {
	pgx.Rows
	release func()
}

func (r *quotaRows) Next() bool {
	more := r.Rows.Next()
	if !more {
		r.release()
	}
	return more
}

func (r *quotaRows) Close() {
	r.Rows.Close()
	r.release()
}
