package pg

import (
	"context"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/id"
)

// Tx is a transaction of InTx. It begins on the server with its first query.
//
// Statements whose result the transaction does not need are queued (pipelining): they go to
// the server in one round trip with the next query, or with the commit. A transaction that
// only queues takes one round trip altogether, as a statement outside a transaction does.
type Tx struct {
	db            *DB
	conn          *pgxpool.Conn // nil before the transaction has begun
	tenant        id.ID         // the tenant whose quota the connection uses
	queue         []statement
	notifications map[string]map[string]bool // payloads by channel
	onEnd         []func(ctx context.Context, committed bool)
	wrote         bool // it may have written: it ran other statements than Exec without an effect
}

type statement struct {
	sql        string
	args       []any
	mustChange bool
	read       func(pgx.Rows) error // reads the rows that the statement returns; nil for none
}

// InTx runs fn in a transaction, and commits unless fn fails. After a deadlock or a serialization
// failure fn is run again. The errors of queued statements are returned by InTx.
func (db *DB) InTx(ctx context.Context, fn func(*Tx) error) error {
	for attempt := 0; ; attempt++ {
		err := db.tryTx(ctx, fn)
		var failure *pgconn.PgError
		if attempt < 3 && errors.As(err, &failure) && (failure.Code == "40001" || failure.Code == "40P01") {
			continue
		}
		return Error(err)
	}
}

func (db *DB) tryTx(ctx context.Context, fn func(*Tx) error) error {
	tx := &Tx{db: db}
	commits := false
	defer func() {
		for _, fn := range tx.onEnd {
			fn(ctx, commits)
		}
	}()
	defer tx.end(ctx)
	if err := fn(tx); err != nil {
		return err
	}
	commits = true // also if the answer to the COMMIT is lost
	if err := tx.commit(ctx); err != nil {
		return err
	}
	if tx.wrote {
		db.writes.Add(1)
	}
	return nil
}

// Queue adds a statement that is sent together with the next query, or with the commit.
func (tx *Tx) Queue(sql string, args ...any) {
	tx.queue = append(tx.queue, statement{sql: sql, args: args})
}

// QueueChange is Queue for a statement that must change a row: if it changes none, the
// transaction fails with apierr.NotFound.
func (tx *Tx) QueueChange(sql string, args ...any) {
	tx.queue = append(tx.queue, statement{sql: sql, args: args, mustChange: true})
}

// QueueReturning is Queue for a statement whose rows are read into the structs of into, by the names
// of their columns, when it is sent: with the next query, or with the commit.
func QueueReturning[T any](tx interface{ queueReading(statement) }, into *[]T, sql string, args ...any) {
	tx.queueReading(statement{sql: sql, args: args, read: func(rows pgx.Rows) (err error) {
		*into, err = pgx.CollectRows(rows, pgx.RowToStructByName[T])
		return err
	}})
}

func (tx *Tx) queueReading(s statement) { tx.queue = append(tx.queue, s) }

// Exec runs a statement, after the queued statements.
func (tx *Tx) Exec(ctx context.Context, sql string, args ...any) (tag pgconn.CommandTag, err error) {
	defer func() { tx.wrote = tx.wrote || tag.RowsAffected() > 0 }()
	if tx.hasBegunAndFlushed() {
		return tx.conn.Exec(ctx, sql, args...)
	}
	var batch Batch
	batch.Queue(sql, args...).Exec(func(of pgconn.CommandTag) error {
		tag = of
		return nil
	})
	return tag, tx.send(ctx, &batch)
}

// Query runs a query, after the queued statements.
func (tx *Tx) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	tx.wrote = true
	if len(args) > 0 && !tx.hasBegunAndFlushed() {
		if _, hasMode := args[0].(pgx.QueryExecMode); hasMode { // which a batch does not support
			if err := tx.send(ctx, &Batch{}); err != nil {
				return nil, err
			}
		}
	}
	if tx.hasBegunAndFlushed() {
		return tx.conn.Query(ctx, sql, args...)
	}
	batch, err := tx.flush(ctx)
	if err != nil {
		return nil, err
	}
	queued := batch.QueuedQueries
	batch.Queue(sql, args...)
	results := tx.conn.SendBatch(ctx, batch)
	for _, statement := range queued {
		if err := statement.Fn(results); err != nil {
			_ = results.Close() // its error is err
			return nil, err
		}
	}
	rows, err := results.Query()
	if err != nil {
		_ = results.Close()
	}
	return &lastRows{rows, results}, err
}

// CopyFrom loads rows into a table.
func (tx *Tx) CopyFrom(ctx context.Context, table pgx.Identifier, columns []string,
	rows pgx.CopyFromSource) (int64, error) {
	tx.wrote = true
	if err := tx.send(ctx, &Batch{}); err != nil {
		return 0, err
	}
	return tx.conn.CopyFrom(ctx, table, columns, rows)
}

// hasBegunAndFlushed reports whether the transaction has begun and no statement is queued.
func (tx *Tx) hasBegunAndFlushed() bool { return tx.conn != nil && len(tx.queue) == 0 }

// sendBatch runs the queries of a batch, after the queued statements.
func (tx *Tx) sendBatch(ctx context.Context, batch *Batch) error {
	tx.wrote = true
	return tx.send(ctx, batch)
}

func (tx *Tx) send(ctx context.Context, batch *Batch) error {
	all, err := tx.flush(ctx)
	if err != nil {
		return err
	}
	all.QueuedQueries = append(all.QueuedQueries, batch.QueuedQueries...)
	return tx.conn.SendBatch(ctx, all).Close()
}

// flush moves the queued statements into a batch, which also begins the transaction unless it has
// begun.
func (tx *Tx) flush(ctx context.Context) (*Batch, error) {
	batch := &Batch{}
	if tx.conn == nil {
		tenant, err := tx.db.tenantQuota.acquire(ctx)
		if err != nil {
			return nil, err
		}
		conn, err := tx.db.Acquire(ctx)
		if err != nil {
			tx.db.tenantQuota.release(tenant)
			return nil, err
		}
		tx.conn, tx.tenant = conn, tenant
		batch.Queue(`BEGIN`).Exec(func(pgconn.CommandTag) error { return nil })
	}
	tx.wrote = tx.wrote || len(tx.queue) > 0
	for _, s := range tx.queue {
		s.add(batch)
	}
	tx.queue = nil
	return batch, nil
}

func (s statement) add(batch *Batch) {
	queued := batch.Queue(s.sql, s.args...)
	if s.read != nil {
		queued.Query(s.read)
		return
	}
	queued.Exec(s.check)
}

func (s statement) check(tag pgconn.CommandTag) error {
	if s.mustChange && tag.RowsAffected() == 0 {
		return apierr.NotFound
	}
	return nil
}

// commit sends the queued statements, and commits. If nothing was sent before, BEGIN, the statements
// and COMMIT go in one batch: a batch without them is an implicit transaction of PostgreSQL, but none
// for some poolers and engines, which lose its atomicity without an error. A statement that is the
// only one goes alone. The result of a statement that must change a row is checked before the commit,
// unless it is the only statement: then nothing was changed that had to be rolled back.
func (tx *Tx) commit(ctx context.Context) error {
	tx.queueNotifications()
	if tx.conn == nil && len(tx.queue) == 1 {
		only := tx.queue[0]
		if only.read != nil {
			tx.wrote = true
			rows, err := tx.db.Query(ctx, only.sql, only.args...)
			if err != nil {
				return err
			}
			return only.read(rows)
		}
		tag, err := tx.db.Exec(ctx, only.sql, only.args...)
		if err != nil {
			return err
		}
		return only.check(tag)
	}
	if slices.ContainsFunc(tx.queue, func(s statement) bool { return s.mustChange }) {
		if err := tx.send(ctx, &Batch{}); err != nil {
			return err
		}
	}
	if tx.conn == nil && len(tx.queue) == 0 {
		return nil
	}
	tag, err := tx.Exec(ctx, `COMMIT`)
	if err == nil && tag.String() != "COMMIT" {
		err = pgx.ErrTxCommitRollback // a statement had failed
	}
	return err
}

// OnEnd calls fn when the transaction has ended, also if it fails. It is committed if its COMMIT was sent,
// even if the answer was lost.
func (tx *Tx) OnEnd(fn func(ctx context.Context, committed bool)) { tx.onEnd = append(tx.onEnd, fn) }

// maxPayloads is how many notifications a transaction sends on a channel. One that has more sends a single
// empty payload.
const maxPayloads = 1000

// Notify adds a notification (NOTIFY), which PostgreSQL sends with the commit. A transaction sends the same
// payload once.
func (tx *Tx) Notify(channel, payload string) {
	if tx.notifications == nil {
		tx.notifications = map[string]map[string]bool{}
	}
	if tx.notifications[channel] == nil {
		tx.notifications[channel] = map[string]bool{}
	}
	tx.notifications[channel][payload] = true
}

// queueNotifications queues the notifications of Notify.
func (tx *Tx) queueNotifications() {
	var channels, payloads []string
	for channel, distinct := range tx.notifications {
		if len(distinct) > maxPayloads {
			distinct = map[string]bool{"": true}
		}
		for payload := range distinct {
			channels, payloads = append(channels, channel), append(payloads, payload)
		}
	}
	if len(channels) > 0 {
		tx.Queue(`SELECT pg_notify(channel, payload) FROM unnest($1::text[], $2::text[]) AS n (channel, payload)`,
			channels, payloads)
	}
}

// end releases the connection, after a rollback if the transaction was not committed.
func (tx *Tx) end(ctx context.Context) {
	if tx.conn == nil {
		return
	}
	if !tx.conn.Conn().IsClosed() && tx.conn.Conn().PgConn().TxStatus() != 'I' {
		_, _ = tx.conn.Exec(context.WithoutCancel(ctx), `ROLLBACK`) // Release closes a connection on which it fails
	}
	tx.conn.Release()
	tx.db.tenantQuota.release(tx.tenant)
}

// lastRows are the rows of the last query of a batch.
type lastRows struct {
	pgx.Rows
	results pgx.BatchResults
}

// Next closes the batch after the last row.
func (r *lastRows) Next() bool {
	more := r.Rows.Next()
	if !more {
		r.Close()
	}
	return more
}

func (r *lastRows) Close() {
	r.Rows.Close()
	_ = r.results.Close() // its error is that of the rows
}
