// Package pg opens the schema of a service in PostgreSQL and runs its queries (connection pool, pgx).
// One service owns one schema under one role. The queries of its store call One, All and Exec, which
// turn errors of the driver into those of pkg/apierr/catalog.go. Queries are in query.go,
// transactions in tx.go, migrations in migrate.go, and the parameters of connections in
// connectionstring.go. pkg/pg/cache caches rows, which pkg/pg/listen keeps current.
package pg

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"strings"
	"sync/atomic"
	"time"

	"github.com/exaring/otelpgx"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.opentelemetry.io/otel/metric"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/pg/listen"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/pkg/telemetry"
)

// Config describes the database of a service.
type Config struct {
	URL        secure.Secret // connection string, as libpq reads it
	Schema     string        // the service's name
	MaxConns   int32         // maximal number of connections of the pool; 0 means 8
	Migrations []fs.FS       // numbered SQL files of goose
	Extensions []string      // extensions of PostgreSQL that the migrations need

	Tracer pgx.QueryTracer // nil: traces queries as spans, while spans are recorded
}

// maxConnIdle is how long an idle connection stays open.
const maxConnIdle = 5 * time.Second

// DB is a connection pool to the schema of one service.
type DB struct {
	*pgxpool.Pool
	*listen.Listener
	schema      string
	writes      atomic.Int64 // number of statements and transactions that may have written
	tenantQuota *tenantQuota
	metrics     metric.Registration
}

// Open migrates the service's schema and connects to it.
func Open(ctx context.Context, cfg Config) (*DB, error) {
	at, err := cfg.parse()
	if err != nil {
		return nil, err
	}
	role, _, err := migrate(ctx, cfg, at)
	if err != nil {
		return nil, fmt.Errorf("prepare the schema %q: %w", cfg.Schema, err)
	}
	return connect(ctx, cfg, at, role)
}

// OpenWithoutMigrating is Open without migrations, and without making the role.
func OpenWithoutMigrating(ctx context.Context, cfg Config) (*DB, error) {
	at, err := cfg.parse()
	if err != nil {
		return nil, err
	}
	conn, err := at.connect(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	role, err := existingRole(ctx, conn, cfg.Schema)
	if err != nil {
		return nil, err
	}
	return connect(ctx, cfg, at, role)
}

func connect(ctx context.Context, cfg Config, at connectionConfig, role string) (*DB, error) {
	db := &DB{schema: cfg.Schema}
	inPool := map[string]string{} // behind a pooler, the pooler sets the parameters of sessions
	if !at.pooled {
		inPool = sessionParameters(cfg, role)
	}
	var err error
	if db.Pool, err = newPool(ctx, at.pool, cfg, inPool); err != nil {
		return nil, err
	}
	db.tenantQuota = newTenantQuota(db.Stat().MaxConns())
	db.Listener = listen.Shared(listenConfig(at.direct.ConnConfig))
	if at.pooled {
		if err := db.checkPool(ctx, cfg, role); err != nil {
			db.Close()
			return nil, err
		}
	}
	if err := db.registerMetrics(); err != nil {
		db.Close()
		return nil, err
	}
	return db, nil
}

// FromPool returns a DB with the given pool, without migrations: a test uses it as the
// DB of another replica.
func FromPool(pool *pgxpool.Pool) *DB {
	return &DB{Pool: pool, tenantQuota: newTenantQuota(pool.Stat().MaxConns()),
		Listener: listen.New(listenConfig(pool.Config().ConnConfig))}
}

// keepalives make the server end the session of a client, and release its locks, about ten seconds
// after the machine or the network of the client has failed. The session of a process that dies ends
// at once.
var keepalives = map[string]string{"tcp_keepalives_idle": "4", "tcp_keepalives_interval": "2",
	"tcp_keepalives_count": "3"}

// listenConfig returns the configuration of the connection that listens to notifications.
func listenConfig(config *pgx.ConnConfig) *pgx.ConnConfig {
	config = config.Copy()
	maps.Copy(config.RuntimeParams, keepalives)
	config.RuntimeParams["application_name"] = "doorward-listen"
	return config
}

// sessionParameters are the parameters of the sessions of a service.
func sessionParameters(cfg Config, role string) map[string]string {
	params := maps.Clone(keepalives)
	params["search_path"], params["application_name"] = cfg.Schema, "doorward-"+cfg.Schema
	if role != "" {
		params["role"] = role
	}
	return params
}

func newPool(ctx context.Context, pool *pgxpool.Config, cfg Config, params map[string]string) (*pgxpool.Pool, error) {
	if pool.MaxConns = cfg.MaxConns; pool.MaxConns == 0 {
		pool.MaxConns = 8
	}
	// A session of PostgreSQL takes 2 to 4 MiB, and a new session a few milliseconds: idle
	// sessions are closed. The pool hands out the connection that was used last.
	pool.MaxConnIdleTime, pool.HealthCheckPeriod = maxConnIdle, maxConnIdle/2
	pool.ShouldPing = shouldPing
	pool.AfterConnect = RegisterID
	maps.Copy(pool.ConnConfig.RuntimeParams, params)
	pool.ConnConfig.RuntimeParams["application_name"] = "doorward-" + cfg.Schema
	pool.ConnConfig.Tracer = cfg.Tracer
	if cfg.Tracer == nil && telemetry.Recording() {
		pool.ConnConfig.Tracer = tracer{otelpgx.NewTracer()}
	}
	connected, err := pgxpool.NewWithConfig(ctx, pool)
	if err != nil {
		return nil, fmt.Errorf("connect to PostgreSQL: %w", Error(err))
	}
	return connected, nil
}

// Ping is the readiness check. A pool whose connections are all in use, by queries that wait
// for a lock for example, does not make the process unready: no other replica would be better
// off. Then Ping reports whether PostgreSQL accepts a further connection.
func (db *DB) Ping(ctx context.Context) error {
	if pool := db.Stat(); pool.AcquiredConns() < pool.MaxConns() {
		return Error(db.Pool.Ping(ctx))
	}
	conn, err := pgx.ConnectConfig(ctx, db.Pool.Config().ConnConfig)
	if failure, ok := errors.AsType[*pgconn.PgError](err); ok && failure.Code == "53300" {
		return nil // too_many_connections: PostgreSQL answers
	}
	if err != nil {
		return Error(err)
	}
	_ = conn.Close(ctx)
	return nil
}

// CheckWrites reports whether the database can be written to (disk full), without
// changing a table: it writes a temporary file to the disk of the data, and commits a record to
// the write-ahead log. A full disk fails one of the two. A disk with a few megabytes left passes.
func (db *DB) CheckWrites(ctx context.Context) error {
	return db.InTx(ctx, func(tx *Tx) error {
		tx.Queue(`SET LOCAL work_mem = '64kB'`)
		tx.Queue(`SELECT count(*) FROM (SELECT n FROM generate_series(1, 50000) AS n
			ORDER BY n DESC OFFSET 0) AS spilled`)
		tx.Queue(`SELECT pg_logical_emit_message(true, 'doorward', 'check')`)
		return nil
	})
}

// Stop closes the pool once its queries are done.
func (db *DB) Stop(context.Context) error {
	db.Close()
	return nil
}

// Error turns an error of the driver into one of apierr: no row, and a foreign key without its row,
// are NotFound; a unique violation is Exists; a database that cannot be reached, has no space
// left, is a standby or lacks its files is Unavailable, with the cause and the SQLSTATE
// (unavailable.go). Other errors are returned unchanged.
func Error(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*apierr.Error](err); ok {
		return err
	}
	if errors.Is(err, pgx.ErrNoRows) {
		return apierr.NotFound
	}
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		return unavailable(err)
	}
	if failure, ok := errors.AsType[*pgconn.PgError](err); ok {
		switch {
		case failure.Code == "23505":
			return fmt.Errorf("%w (%w)", apierr.Exists, err)
		case failure.Code == "23503": // foreign key violation: the row that it refers to was deleted
			return fmt.Errorf("%w (%w)", apierr.NotFound, err)
		case failure.Code == "54000": // an index entry is too large
			return fmt.Errorf("%w (%w)", apierr.TooLong.Because(
				"a text is too long in its normal form (Unicode NFKC, case folded)"), err)
		case strings.HasPrefix(failure.Code, "08"), strings.HasPrefix(failure.Code, "57P"),
			strings.HasPrefix(failure.Code, "53"), // disk full, out of memory, too many connections
			failure.Code == "57014",               // statement_timeout, or the request was given up
			failure.Code == "55P03",               // lock_timeout
			// serialization failure and deadlock, also when repeated (tx.go)
			failure.Code == "40001", failure.Code == "40P01",
			failure.Code == "25006", // a standby
			failure.Code == "58P01": // the files of the server were replaced while it runs
			return unavailable(err)
		}
		return err
	}
	var network net.Error
	if errors.As(err, &network) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, context.DeadlineExceeded) || pgconn.Timeout(err) || isClosed(err) {
		return unavailable(err)
	}
	return err
}

// unavailable returns apierr.Unavailable with the cause for the log; the client shall retry. A
// request that has timed out may have spent its time elsewhere than in the database.
func unavailable(err error) error {
	reason := unavailableReason(Code(err))
	if errors.Is(err, context.DeadlineExceeded) {
		reason = "the request took longer than it may; repeat it later"
	}
	return fmt.Errorf("%w (%w)", apierr.Unavailable.Because("%s", reason).WithRetryAfter(time.Second), err)
}

// isClosed reports whether an error is one of the driver's untyped errors for a closed connection.
func isClosed(err error) bool {
	text := err.Error()
	return strings.Contains(text, "conn closed") || strings.Contains(text, "unexpected EOF") ||
		strings.Contains(text, "closed pool")
}
