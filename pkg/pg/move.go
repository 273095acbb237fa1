package pg

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/doorward/doorward/pkg/id"
)

const (
	// settleTime is twice the time after which no process uses the former placement of a tenant
	// from its cache.
	settleTime = 2 * maxStaleness
	// blockLockTimeout is the lock_timeout of one attempt to block writes: writers queue
	// behind it. drainTimeout bounds all attempts.
	blockLockTimeout = 500 * time.Millisecond
	drainTimeout     = 30 * time.Second
	deleteBatch      = 10_000
)

// MaxRequestDuration exceeds the longest request. Until it has passed after a move, a request may
// still read the rows in the former shard.
const MaxRequestDuration = 20 * time.Second

// Moved is the result of a move.
type Moved struct {
	From, To      string
	Rows          int64
	WritesBlocked time.Duration // how long writes of the tenant were blocked
}

// Errors of Move.
var (
	ErrNoShard    = errors.New("no database has this name")
	ErrMoving     = errors.New("the tenant is being moved by another process")
	errWritersRun = errors.New("the writers of the tenant do not end")
)

// Move moves the rows of a tenant to another shard (tenant migration) while the tenant is used: reads
// go on, transactions wait. It can be killed at any time, and then must be run again: to the same
// shard, or back to the former shard. report is called before each step. The rows that are left in
// the former shard must be deleted by DeleteStaleRows, not earlier than MaxRequestDuration after the move.
func (db *DB) Move(ctx context.Context, tenant id.ID, to string, report func(step string)) (moved Moved, err error) {
	target := db.shardNamed(to)
	if target == nil {
		return moved, fmt.Errorf("%w: %q; there are %s", ErrNoShard, to, strings.Join(db.ShardNames(), ", "))
	}
	lock, err := db.lockMove(ctx, tenant)
	if err != nil {
		return moved, err
	}
	defer unlockMove(ctx, lock)
	source, err := db.placementOf(ctx, tenant)
	if err != nil {
		return moved, err
	}
	moved.From, moved.To = source.Name(), to
	if source == target { // an earlier call may have left writes blocked
		return moved, target.allowWrites(ctx, tenant)
	}
	tables, err := db.movedTables(ctx)
	if err != nil {
		return moved, err
	}
	began := time.Now()
	m := move{db: db, lock: lock, tenant: tenant, source: source, target: target, tables: tables, report: report}
	moved.Rows, err = m.transfer(ctx)
	moved.WritesBlocked = time.Since(began)
	return moved, err
}

// movedTables returns the tables whose rows are moved with a tenant.
func (db *DB) movedTables(ctx context.Context) ([]TenantTable, error) {
	tables, err := db.TenantTables(ctx)
	return slices.DeleteFunc(tables, func(t TenantTable) bool { return db.tables[t.Name] == OnMain || t.Name == "outbox" }), err
}

// Name returns the name of a shard.
func (db *DB) Name() string {
	if db.shard == "" {
		return Main
	}
	return db.shard
}

// lockMove takes the advisory lock of moves of a tenant, in a session of its own. The lock is lost when
// the connection breaks; then another process may begin a move.
func (db *DB) lockMove(ctx context.Context, tenant id.ID) (*pgx.Conn, error) {
	conn, err := db.openSession(ctx)
	if err != nil {
		return nil, err
	}
	free, err := Value[bool](ctx, conn, `SELECT pg_try_advisory_lock($1)`, lockKey("move", db.schema+"/"+tenant.String()))
	if err == nil && !free {
		err = ErrMoving
	}
	if err != nil {
		_ = conn.Close(ctx)
		return nil, err
	}
	return conn, nil
}

func unlockMove(ctx context.Context, lock *pgx.Conn) {
	ctx = context.WithoutCancel(ctx)
	_, _ = lock.Exec(ctx, `SELECT pg_advisory_unlock_all()`) // the session ends a moment after its connection
	_ = lock.Close(ctx)
}

// placementOf returns the shard of a tenant by the table tenant_shards of the main shard.
func (db *DB) placementOf(ctx context.Context, tenant id.ID) (*DB, error) {
	names, err := Values[string](db.OnMain(ctx), db, placementQuery, tenant, tenant)
	if err != nil || len(names) == 0 {
		return db, err
	}
	if shard := db.shardNamed(names[0]); shard != nil {
		return shard, nil
	}
	return nil, fmt.Errorf("%w: %q", ErrNoShard, names[0])
}

// move is a move of a tenant.
type move struct {
	db, source, target *DB
	lock               *pgx.Conn
	tenant             id.ID
	tables             []TenantTable // in the order of their foreign keys, referenced tables first
	report             func(step string)
}

// transfer copies the tenant to the target. When it fails before the placement is changed, the
// tenant stays in the source, and its writes are allowed there.
func (m move) transfer(ctx context.Context) (rows int64, err error) {
	changing := false
	defer func() {
		if err == nil || changing {
			return
		}
		ctx := context.WithoutCancel(ctx)
		lost := m.lock.Ping(ctx) // if the lock is lost, another process may have blocked writes for its own move
		if lost == nil {
			lost = m.source.allowWrites(ctx, m.tenant)
		}
		err = errors.Join(err, lost)
	}()
	m.report("wait for writers")
	for _, shard := range []*DB{m.target, m.source} {
		if err := shard.blockWrites(ctx, m.tenant); err != nil {
			return 0, err
		}
	}
	if err := m.awaitEvents(ctx); err != nil {
		return 0, err
	}
	if rows, err = m.copy(ctx); err != nil {
		return 0, err
	}
	m.report("change the database")
	changing = true
	if err := m.setPlacement(ctx); err != nil {
		return 0, err
	}
	// Writes stay blocked until no process reads from the source any more.
	settled := time.NewTimer(settleTime)
	defer settled.Stop()
	<-settled.C
	return rows, m.target.allowWrites(context.WithoutCancel(ctx), m.tenant)
}

// blockWrites waits for the running transactions of the tenant and blocks new transactions, by a row
// in the table closed_tenants.
func (db *DB) blockWrites(ctx context.Context, tenant id.ID) error {
	for began := time.Now(); ; {
		tx, err := db.Begin(ctx)
		if err != nil {
			return Error(err)
		}
		_, err = tx.Exec(ctx, fmt.Sprintf(`SET LOCAL lock_timeout = %d`, blockLockTimeout.Milliseconds()))
		if err == nil {
			_, err = tx.Exec(ctx, `SELECT close_tenant($1)`, tenant)
		}
		if err == nil {
			return Error(tx.Commit(ctx))
		}
		_ = tx.Rollback(context.WithoutCancel(ctx))
		var failure *pgconn.PgError
		if !errors.As(err, &failure) || failure.Code != "55P03" {
			return Error(err)
		}
		if time.Since(began) > drainTimeout {
			return errWritersRun
		}
	}
}

// allowWrites ends blockWrites.
func (db *DB) allowWrites(ctx context.Context, tenant id.ID) error {
	_, err := db.exec(ctx, `DELETE FROM closed_tenants WHERE tenant_id = $1`, tenant)
	return Error(err)
}

// awaitEvents waits until the relay has sent the events of the tenant in the source, so that they
// are sent before those in the target.
func (m move) awaitEvents(ctx context.Context) error {
	var has bool
	if err := m.source.QueryRow(ctx, `SELECT to_regclass('outbox') IS NOT NULL`).Scan(&has); err != nil || !has {
		return Error(err)
	}
	m.report("wait for events")
	for began := time.Now(); ; {
		var waiting bool
		err := m.source.QueryRow(ctx, `SELECT EXISTS (SELECT FROM outbox WHERE tenant_id = $1)`, m.tenant).Scan(&waiting)
		if err != nil || !waiting {
			return Error(err)
		}
		if time.Since(began) > drainTimeout {
			return errors.New("the events of the tenant are not sent; is Kafka there, and does the service run? Those of a process " +
				"that was killed are sent within a minute: repeat the command then")
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(blockedPoll):
		}
	}
}

// copy copies the rows of the tenant from the source to the target, in one transaction.
func (m move) copy(ctx context.Context) (rows int64, err error) {
	from, err := m.source.Begin(ctx)
	if err != nil {
		return 0, Error(err)
	}
	defer func() { _ = from.Rollback(context.WithoutCancel(ctx)) }()
	if _, err := from.Exec(ctx, `SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY`); err != nil {
		return 0, Error(err)
	}
	to, err := m.target.Begin(ctx)
	if err != nil {
		return 0, Error(err)
	}
	defer func() { _ = to.Rollback(context.WithoutCancel(ctx)) }()
	for _, t := range slices.Backward(m.tables) { // rows of a move that was killed
		if _, err := to.Exec(ctx, `DELETE FROM `+t.quoted()+` WHERE tenant_id = $1`, m.tenant); err != nil {
			return 0, Error(err)
		}
	}
	for _, t := range m.tables {
		if m.db.tables[t.Name] == Derived {
			continue
		}
		m.report("copy " + t.Name)
		n, err := t.copy(ctx, from.Conn().PgConn(), to.Conn().PgConn(), m.tenant)
		if err != nil {
			return 0, fmt.Errorf("copy the table %s: %w", t.Name, Error(err))
		}
		rows += n
	}
	return rows, Error(to.Commit(ctx))
}

// copy copies the rows of a tenant in one table from one database to another (COPY).
func (t TenantTable) copy(ctx context.Context, from, to *pgconn.PgConn, tenant id.ID) (int64, error) {
	columns := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		columns[i] = pgx.Identifier{c}.Sanitize()
	}
	list := strings.Join(columns, ", ")
	reader, writer := io.Pipe()
	read := make(chan struct{})
	go func() {
		defer close(read)
		_, err := from.CopyTo(ctx, writer, `COPY (SELECT `+list+` FROM `+t.quoted()+` WHERE tenant_id = '`+
			fmt.Sprintf("%x", tenant[:])+`') TO STDOUT (FORMAT binary)`)
		_ = writer.CloseWithError(err) // which never fails
	}()
	tag, err := to.CopyFrom(ctx, reader, `COPY `+t.quoted()+` (`+list+`) FROM STDIN (FORMAT binary)`)
	_ = reader.CloseWithError(err)
	<-read
	return tag.RowsAffected(), err
}

func (t TenantTable) quoted() string { return pgx.Identifier{t.Name}.Sanitize() }

// setPlacement sets the shard of the tenant in tenant_shards, and notifies all processes. It uses the
// session of the lock, so that it fails if the lock is lost.
func (m move) setPlacement(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	return Error(pgx.BeginFunc(ctx, m.lock, func(tx pgx.Tx) error {
		sql, args := `DELETE FROM tenant_shards WHERE tenant_id = $1`, []any{m.tenant}
		if m.target != m.db {
			sql = `INSERT INTO tenant_shards (tenant_id, shard, moved_at) VALUES ($1, $2, now())
				ON CONFLICT (tenant_id) DO UPDATE SET shard = excluded.shard, moved_at = excluded.moved_at`
			args = append(args, m.target.shard)
		}
		if _, err := tx.Exec(ctx, sql, args...); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `SELECT pg_notify($1, $2::uuid || ' ' || $2::uuid)`, m.db.placementChannel(), m.tenant)
		return err
	}))
}

// HasStaleRows reports whether another shard than that of the tenant has rows of it.
func (db *DB) HasStaleRows(ctx context.Context, tenant id.ID) (has bool, err error) {
	err = db.eachStaleTable(ctx, tenant, func(shard *DB, t TenantTable) error {
		if has {
			return nil
		}
		return Error(shard.QueryRow(ctx, `SELECT EXISTS (SELECT FROM `+t.quoted()+` WHERE tenant_id = $1)`, tenant).Scan(&has))
	})
	return has, err
}

// DeleteStaleRows deletes the rows of a tenant from all shards but its own.
func (db *DB) DeleteStaleRows(ctx context.Context, tenant id.ID) error {
	lock, err := db.lockMove(ctx, tenant)
	if err != nil {
		return err
	}
	defer unlockMove(ctx, lock)
	blocked := map[*DB]time.Time{}
	for _, shard := range db.allShards() {
		var at time.Time
		err := shard.QueryRow(ctx, `SELECT closed_at FROM closed_tenants WHERE tenant_id = $1`, tenant).Scan(&at)
		if err != nil && !errors.Is(err, pgx.ErrNoRows) {
			return Error(err)
		}
		blocked[shard] = at
	}
	return db.eachStaleTable(ctx, tenant, func(shard *DB, t TenantTable) error { return shard.deleteTenant(ctx, t, tenant, blocked[shard]) })
}

// eachStaleTable calls fn with the tables of all shards but that of the tenant, in the order of their
// foreign keys, referring tables first.
func (db *DB) eachStaleTable(ctx context.Context, tenant id.ID, fn func(*DB, TenantTable) error) error {
	at, err := db.placementOf(ctx, tenant)
	if err != nil {
		return err
	}
	tables, err := db.movedTables(ctx)
	if err != nil {
		return err
	}
	for _, shard := range db.allShards() {
		for _, t := range slices.Backward(tables) {
			if shard == at || shard == db && db.tables[t.Name] == OnBoth {
				continue
			}
			if err := fn(shard, t); err != nil {
				return err
			}
		}
	}
	return nil
}

// deleteTenant deletes the rows of a tenant from a table, in batches. It deletes nothing if the
// writes of the tenant are no longer blocked since that time: then another process has moved the
// tenant to this shard.
func (db *DB) deleteTenant(ctx context.Context, t TenantTable, tenant id.ID, blocked time.Time) error {
	for {
		tag, err := db.exec(ctx, `DELETE FROM `+t.quoted()+` WHERE ctid = ANY (ARRAY(
			SELECT ctid FROM `+t.quoted()+` WHERE tenant_id = $1 LIMIT $2)) AND tenant_id = $1
			AND EXISTS (SELECT FROM closed_tenants c WHERE c.tenant_id = $1 AND c.closed_at = $3)`, tenant, deleteBatch, blocked)
		if err != nil || tag.RowsAffected() < deleteBatch {
			return Error(err)
		}
	}
}

// TenantTable is a table with a tenant_id, from the catalogue of PostgreSQL.
type TenantTable struct {
	Name    string
	Columns []string // without those that PostgreSQL computes
	Primary []string // columns of the primary key
	Parents []string // tables that foreign keys lead to
}

// TenantTables returns the tables of the schema with a tenant_id, in the order of their foreign keys,
// referenced tables first.
func (db *DB) TenantTables(ctx context.Context) ([]TenantTable, error) {
	all, err := All[TenantTable](db.OnMain(ctx), db, `
		SELECT c.relname::text AS name,
			ARRAY(SELECT a.attname::text FROM pg_attribute a
				WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = '' ORDER BY a.attnum) AS columns,
			ARRAY(SELECT a.attname::text FROM pg_index i CROSS JOIN unnest(i.indkey) WITH ORDINALITY AS k (attnum, n)
				JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = k.attnum
				WHERE i.indrelid = c.oid AND i.indisprimary ORDER BY k.n) AS "primary",
			ARRAY(SELECT DISTINCT p.relname::text FROM pg_constraint f JOIN pg_class p ON p.oid = f.confrelid
				WHERE f.conrelid = c.oid AND f.contype = 'f') AS parents
		FROM pg_class c
		WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
			AND EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname = 'tenant_id')
		ORDER BY c.relname`)
	if err != nil {
		return nil, err
	}
	sorted := make([]TenantTable, 0, len(all))
	has := func(name string) bool {
		return slices.ContainsFunc(sorted, func(t TenantTable) bool { return t.Name == name })
	}
	for len(sorted) < len(all) {
		before := len(sorted)
		for _, t := range all {
			if !has(t.Name) && !slices.ContainsFunc(t.Parents, func(parent string) bool { return !has(parent) }) {
				sorted = append(sorted, t)
			}
		}
		if len(sorted) == before {
			return nil, errors.New("foreign keys refer to each other in a circle")
		}
	}
	return sorted, nil
}
