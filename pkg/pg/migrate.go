package pg

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"log/slog"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
)

// migrate runs the schema migrations of the service (goose) and returns the role that owns the
// schema: doorward_<schema>, which is created on the first start if the login may create roles. If it
// may not, the login itself owns the schema, and the role is empty. Replicas that start at the same
// time wait for each other by an advisory lock. A schema that lacks nothing needs no lock, so that a
// process starts while another release migrates. done is the number of migrations that were applied.
func migrate(ctx context.Context, cfg Config, at connectionConfig) (role string, done int, err error) {
	conn, err := at.connect(ctx)
	if err != nil {
		return "", 0, err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	if err := checkSession(ctx, conn, cfg.Schema); err != nil {
		return "", 0, err
	}
	complete, err := isMigrated(ctx, conn, cfg)
	if err != nil {
		return "", 0, err
	}
	if complete {
		role, err = existingRole(ctx, conn, cfg.Schema)
		return role, 0, err
	}
	if err := awaitMigrationLock(ctx, conn, cfg.Schema); err != nil {
		return "", 0, err
	}
	role, err = ensureSchema(ctx, conn, cfg.Schema)
	if err != nil || len(cfg.Migrations) == 0 {
		return role, 0, err
	}
	path, err := ensureExtensions(ctx, conn, cfg)
	if err != nil {
		return "", 0, err
	}
	config := at.direct.ConnConfig.Copy()
	config.RuntimeParams["search_path"] = path
	if role != "" {
		config.RuntimeParams["role"] = role
	}
	config.RuntimeParams["lock_timeout"] = strconv.FormatInt(lockTimeout.Milliseconds(), 10)
	config.OnNotice = logWarning
	db := stdlib.OpenDB(*config)
	defer func() { _ = db.Close() }()
	provider, err := goose.NewProvider(goose.DialectPostgres, db, cfg.migrations(),
		goose.WithAllowOutofOrder(true),
		goose.WithTableName("migrations"))
	if err != nil {
		return "", 0, err
	}
	done, err = runMigrations(ctx, db, provider)
	return role, done, err
}

// Migrate runs the schema migrations of a service, and returns how many were applied.
func Migrate(ctx context.Context, cfg Config) (done int, err error) {
	at, err := cfg.parse()
	if err != nil {
		return 0, err
	}
	_, done, err = migrate(ctx, cfg, at)
	return done, err
}

// isMigrated reports whether the schema has all migrations of this release. A schema that is newer, and on which this
// release may not run, is an error.
func isMigrated(ctx context.Context, conn *pgx.Conn, cfg Config) (bool, error) {
	if len(cfg.Migrations) == 0 {
		return false, nil
	}
	state, err := readMigrations(ctx, conn, cfg)
	if failure, ok := errors.AsType[*pgconn.PgError](err); ok && failure.Code == "42501" {
		return false, nil // a login that does not inherit the rights of its role
	}
	if err != nil {
		return false, err
	}
	return len(state.Pending) == 0, state.NewerError(cfg.Schema)
}

// existingRole returns the role that owns the schema, and an empty name where there is none.
func existingRole(ctx context.Context, conn *pgx.Conn, schema string) (string, error) {
	return Value[string](ctx, conn, `SELECT coalesce((SELECT rolname::text FROM pg_roles WHERE rolname = $1), '')`,
		roleOf(schema))
}

// awaitMigrationLock takes the advisory lock of the migrations of a schema, which ends with the
// connection. It asks again and again: a statement that waits for the lock would hold a snapshot, for
// whose end CREATE INDEX CONCURRENTLY of the process that has the lock would wait in turn.
func awaitMigrationLock(ctx context.Context, conn *pgx.Conn, schema string) error {
	for {
		var locked bool
		err := conn.QueryRow(ctx, "SELECT pg_try_advisory_lock($1)", lockKey("migrate", schema)).Scan(&locked)
		if err != nil || locked {
			return Error(err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(migrationLockPause):
		}
	}
}

// migrationLockPause is the time between two attempts to take the lock of the migrations.
const migrationLockPause = 100 * time.Millisecond

// A migration that waits for the lock of a table blocks every later query of that table. So it
// waits for lockTimeout only, and is retried after lockPause.
const (
	lockTimeout  = 400 * time.Millisecond
	lockAttempts = 100
	lockPause    = time.Second
)

// runMigrations runs the migrations that are not applied yet, and returns how many these were.
func runMigrations(ctx context.Context, db *sql.DB, provider *goose.Provider) (done int, err error) {
	for attempt := 1; ; attempt++ {
		n, err := runOnce(ctx, db, provider)
		done += n
		var failure *pgconn.PgError
		if !errors.As(err, &failure) || failure.Code != "55P03" {
			return done, err
		}
		if attempt == lockAttempts {
			return done, fmt.Errorf("other queries kept a table locked, one after the other; migrate again when "+
				"those that pg_stat_activity shows to run for seconds have ended: %w", err)
		}
		slog.WarnContext(ctx, "database migration waits for a lock, retrying", "attempt", attempt, "error", err.Error())
		select {
		case <-ctx.Done():
			return done, ctx.Err()
		case <-time.After(lockPause):
		}
	}
}

// runOnce runs the migrations that are not applied yet. Each leaves the oldest release that may run on it in the
// table of the migrations.
func runOnce(ctx context.Context, db *sql.DB, provider *goose.Provider) (done int, err error) {
	if _, err := provider.GetDBVersion(ctx); err != nil { // makes the table
		return 0, err
	}
	for _, statement := range []string{
		`ALTER TABLE migrations ADD COLUMN IF NOT EXISTS oldest_release text`,
		`ALTER TABLE migrations ALTER COLUMN oldest_release SET DEFAULT '` + oldestRelease + `'`,
	} {
		if _, err := db.ExecContext(ctx, statement); err != nil {
			return 0, err
		}
	}
	results, err := provider.Up(ctx)
	if partial, ok := errors.AsType[*goose.PartialError](err); ok {
		return len(partial.Applied), err
	}
	return len(results), err
}

// logWarning logs the warnings that a migration raises.
func logWarning(_ *pgconn.PgConn, notice *pgconn.Notice) {
	if notice.SeverityUnlocalized == "WARNING" {
		slog.Warn("database migration", "warning", notice.Message)
	}
}

func roleOf(schema string) string { return "doorward_" + schema }

// EnsureRole creates the role that owns the schema, unless it exists: before a dump is restored, which names it.
func EnsureRole(ctx context.Context, cfg Config) error {
	at, err := cfg.parse()
	if err != nil {
		return err
	}
	conn, err := at.connect(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	_, err = ensureRole(ctx, conn, cfg.Schema)
	return err
}

// ensureRole returns the role that owns a schema, and an empty name where it does not exist and the login may not
// create it.
func ensureRole(ctx context.Context, conn *pgx.Conn, schema string) (role string, err error) {
	role = roleOf(schema)
	var known, mayCreate bool
	err = conn.QueryRow(ctx, `SELECT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = $1),
		(SELECT rolcreaterole OR rolsuper FROM pg_roles WHERE rolname = current_user)`, role).Scan(&known, &mayCreate)
	switch {
	case err != nil:
		return "", Error(err)
	case known:
		return role, nil
	case !mayCreate:
		return "", nil
	}
	owner := pgx.Identifier{role}.Sanitize()
	if err := ignoreAlreadyExists(conn.Exec(ctx, "CREATE ROLE "+owner+" NOLOGIN")); err != nil {
		return "", err
	}
	_, err = conn.Exec(ctx, "GRANT "+owner+" TO CURRENT_USER")
	return role, Error(err)
}

func ensureSchema(ctx context.Context, conn *pgx.Conn, schema string) (role string, err error) {
	if role, err = ensureRole(ctx, conn, schema); err != nil {
		return "", err
	}
	var exists bool
	err = conn.QueryRow(ctx, `SELECT EXISTS (SELECT 1 FROM pg_namespace WHERE nspname = $1)`, schema).Scan(&exists)
	if err != nil || exists { // a login that may not create schemas is enough
		return role, Error(err)
	}
	owner := "CURRENT_USER"
	if role != "" {
		owner = pgx.Identifier{role}.Sanitize()
	}
	name := pgx.Identifier{schema}.Sanitize()
	if err := ignoreAlreadyExists(conn.Exec(ctx,
		"CREATE SCHEMA IF NOT EXISTS "+name+" AUTHORIZATION "+owner)); err != nil {
		return "", fmt.Errorf("create the schema %q: %w", schema, err)
	}
	return role, nil
}

// ensureExtensions creates the extensions that the migrations need, if they do not exist, and returns
// the search path of the migrations, which includes the schemas of the extensions: public, or
// the schema that an administrator has chosen. Only migrations use names of an extension.
func ensureExtensions(ctx context.Context, conn *pgx.Conn, cfg Config) (path string, err error) {
	path = pgx.Identifier{cfg.Schema}.Sanitize()
	for _, name := range cfg.Extensions {
		const where = `SELECT n.nspname FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
			WHERE e.extname = $1`
		var schema string
		err := conn.QueryRow(ctx, where, name).Scan(&schema)
		if errors.Is(err, pgx.ErrNoRows) {
			create := "CREATE EXTENSION IF NOT EXISTS " + pgx.Identifier{name}.Sanitize() + " SCHEMA public"
			if err := ignoreAlreadyExists(conn.Exec(ctx, create)); err != nil {
				return "", fmt.Errorf("create the extension %q, which comes with PostgreSQL: %w; an administrator "+
					"can do it with CREATE EXTENSION %s",
					name, err, name)
			}
			err = conn.QueryRow(ctx, where, name).Scan(&schema)
		}
		if err != nil {
			return "", Error(err)
		}
		path += ", " + pgx.Identifier{schema}.Sanitize()
	}
	return path, nil
}

// ignoreAlreadyExists returns nil for the error that an object exists already, because another
// process has created it between the check and the statement.
func ignoreAlreadyExists(_ pgconn.CommandTag, err error) error {
	var failure *pgconn.PgError
	if errors.As(err, &failure) && (failure.Code == "42710" || failure.Code == "23505" || failure.Code == "42P06") {
		return nil
	}
	return Error(err)
}

// Embedded returns the folder migrations of the embedded files of a package.
func Embedded(files embed.FS) fs.FS {
	folder, err := fs.Sub(files, "migrations")
	if err != nil {
		panic(err) // only a name that is no path fails
	}
	return folder
}

// mergedFolders is a file system with the files of several folders.
type mergedFolders []fs.FS

// Open opens the file in the first folder that has it.
func (f mergedFolders) Open(name string) (fs.File, error) {
	for _, folder := range f {
		if file, err := folder.Open(name); !errors.Is(err, fs.ErrNotExist) {
			return file, err
		}
	}
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
}

// Glob lists the files of every folder.
func (f mergedFolders) Glob(pattern string) (names []string, err error) {
	for _, folder := range f {
		found, err := fs.Glob(folder, pattern)
		if err != nil {
			return nil, err
		}
		names = append(names, found...)
	}
	return names, nil
}

// lockKey returns the key of an advisory lock.
func lockKey(purpose, name string) int64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte("doorward/" + purpose + "/" + name))
	return int64(h.Sum64())
}
