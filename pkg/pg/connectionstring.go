package pg

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	// connectTimeout bounds an attempt to connect to one host of a connection
	// string, unless its parameter connect_timeout does.
	connectTimeout = 5 * time.Second
	// directParameter is the parameter of a connection string with the address of PostgreSQL
	// itself, where the host is a pooler.
	directParameter = "direct"
)

// connectionConfig is a parsed connection string (DSN).
type connectionConfig struct {
	pool   *pgxpool.Config // for queries and transactions
	direct *pgxpool.Config // for connections that need a session; the same as pool without a pooler
	pooled bool            // the host is a pooler, which shares sessions among its clients
}

// parse parses the connection string. Its parameter direct, of the form
// host:port[,host:port][/database], says that the host is a pooler, such as PgBouncer in transaction
// mode, and has the address of the server: connections that need a session of their own (LISTEN,
// session locks, migrations) connect there.
func (cfg Config) parse() (a connectionConfig, err error) {
	base, rest, _ := strings.Cut(cfg.URL.Reveal(), "?")
	query, err := url.ParseQuery(rest)
	if err != nil {
		return a, errAddress
	}
	direct := query.Get(directParameter)
	if direct == "" {
		if a.pool, err = parsePool(cfg.URL.Reveal()); err != nil {
			return a, err
		}
		a.direct = a.pool
		return a, nil
	}
	query.Del(directParameter)
	if a.pool, err = parsePool(base + "?" + query.Encode()); err != nil {
		return a, err
	}
	if !query.Has("default_query_exec_mode") {
		// A named prepared statement would be missing in the next session of the pooler.
		a.pool.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
	}
	servers, database, named := strings.Cut(direct, "/")
	var hosts, ports []string
	for server := range strings.SplitSeq(servers, ",") {
		host, port, err := net.SplitHostPort(server)
		if err != nil {
			host, port = server, "5432"
		}
		hosts, ports = append(hosts, host), append(ports, port)
	}
	query.Set("host", strings.Join(hosts, ","))
	query.Set("port", strings.Join(ports, ","))
	if named {
		query.Set("dbname", database)
	}
	a.pooled = true
	a.direct, err = parsePool(base + "?" + query.Encode())
	return a, err
}

var errAddress = errors.New(
	"DATABASE_URL is not a PostgreSQL connection string, such as postgres://user:password@host/database")

func parsePool(text string) (*pgxpool.Config, error) {
	pool, err := pgxpool.ParseConfig(text)
	if err != nil {
		// The driver's text holds the connection string; its cause may name a file.
		if cause := errors.Unwrap(err); cause != nil && strings.Contains(err.Error(), "failed to configure TLS") {
			return nil, fmt.Errorf("DATABASE_URL: TLS cannot be configured: %w", cause)
		}
		return nil, errAddress
	}
	if pool.ConnConfig.ConnectTimeout == 0 {
		pool.ConnConfig.ConnectTimeout = connectTimeout
	}
	// Keepalives detect within ten seconds that the machine of the server has failed.
	dialer := net.Dialer{KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 4 * time.Second,
		Interval: 2 * time.Second, Count: 3}}
	pool.ConnConfig.DialFunc = dialer.DialContext
	return pool, nil
}

// connect connects to PostgreSQL itself, with a session of its own.
func (a connectionConfig) connect(ctx context.Context) (*pgx.Conn, error) {
	conn, err := pgx.ConnectConfig(ctx, a.direct.ConnConfig)
	return conn, explainConnectError(err)
}

// explainConnectError is Error for a connection that is made when a process starts: for an error
// of TLS it says what to change.
func explainConnectError(err error) error {
	var unknown x509.UnknownAuthorityError
	var name x509.HostnameError
	var invalid x509.CertificateInvalidError
	switch {
	case errors.As(err, &unknown):
		return fmt.Errorf("the certificate of PostgreSQL is signed by an authority that is not trusted; name that "+
			"authority's certificate with the parameter sslrootcert of DATABASE_URL, or put it into a folder that "+
			"SSL_CERT_DIR names: %w", err)
	case errors.As(err, &name):
		return fmt.Errorf("the certificate of PostgreSQL is for other names than the host in DATABASE_URL; use one "+
			"of those names, or issue a certificate for this one: %w", err)
	case errors.As(err, &invalid):
		return fmt.Errorf("the certificate of PostgreSQL is not valid; renew it: %w", err)
	}
	return Error(err)
}

// checkSession returns an error if the connection has no session of its own, because it is a
// connection to a pooler that shares sessions among its clients. A pooler in session mode must pass
// on the search path.
func checkSession(ctx context.Context, conn *pgx.Conn, schema string) error {
	first, err := backendPID(ctx, conn)
	if err != nil || first == conn.PgConn().PID() {
		return Error(err)
	}
	config := conn.Config().Copy()
	config.RuntimeParams["search_path"] = schema
	other, err := pgx.ConnectConfig(ctx, config)
	var refused *pgconn.PgError
	if errors.As(err, &refused) && refused.Code == "08P01" {
		return fmt.Errorf("%w: %w", errPoolerSession, err)
	}
	if err != nil {
		return explainConnectError(err)
	}
	defer func() { _ = other.Close(context.WithoutCancel(ctx)) }()
	var path string
	if err := other.QueryRow(ctx, `SHOW search_path`, pgx.QueryExecModeSimpleProtocol).Scan(&path); err != nil {
		return Error(err)
	}
	if path != schema {
		return errPoolerSession
	}
	// A pooler assigns the session that was released last, unless another client has taken it.
	for range 5 {
		if _, err := other.Exec(ctx, `BEGIN`, pgx.QueryExecModeSimpleProtocol); err != nil {
			return Error(err)
		}
		second, err := backendPID(ctx, other)
		if err != nil {
			return Error(err)
		}
		again, err := backendPID(ctx, conn)
		if err != nil {
			return Error(err)
		}
		if _, err := other.Exec(ctx, `ROLLBACK`, pgx.QueryExecModeSimpleProtocol); err != nil {
			return Error(err)
		}
		if second == first || again != first {
			return errPoolerSession
		}
	}
	return nil
}

var errPoolerSession = errors.New("DATABASE_URL leads to a pooler that shares sessions among its clients, as " +
	"PgBouncer in transaction mode: LISTEN, session locks, prepared statements and search_path fail there; name the " +
	"server too with the parameter direct=host:port/database, or connect to it alone (docs/operations.md#postgresql)")

// backendPID returns the id of the server process that answers.
func backendPID(ctx context.Context, conn *pgx.Conn) (pid uint32, err error) {
	err = conn.QueryRow(ctx, `SELECT pg_backend_pid()`, pgx.QueryExecModeSimpleProtocol).Scan(&pid)
	return pid, err
}

// checkPool returns an error if the sessions of a pooler have another search path than the schema; a
// client of the pooler cannot set it.
func (db *DB) checkPool(ctx context.Context, cfg Config, role string) error {
	path, err := Value[string](ctx, db, `SELECT coalesce(current_schema()::text, '')`)
	if err != nil || path == cfg.Schema {
		return err
	}
	set := "SET search_path = " + cfg.Schema
	if role != "" {
		set += "; SET ROLE " + role
	}
	return fmt.Errorf(
		"the sessions of the pooler in DATABASE_URL see the schema %q instead of %q; give %s a database of its own in "+
			"PgBouncer, with connect_query='%s' (docs/operations.md#postgresql)", path, cfg.Schema, cfg.Schema, set)
}
