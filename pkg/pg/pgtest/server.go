package pgtest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/doorward/doorward/pkg/pg/private"
)

// server is the PostgreSQL server of the test binary.
type server struct {
	address *url.URL        // address of the database for administration
	private *private.Server // nil: the server of TEST_DATABASE_URL
	dir     string

	// strategy is the STRATEGY of CREATE DATABASE by which a template is copied: file_copy
	// takes a third of the time without fsync. Older versions have no other.
	strategy string

	administering sync.Mutex
	admin         *pgx.Conn

	templating sync.Mutex
	templates  map[string]string // by the functions that migrated it
}

var (
	starting sync.Mutex
	current  *server
)

// Main runs the tests of the package, stops the server if one was started, and exits. If the test
// binary is killed, or does not call Main, its server stops with the process, and the next test
// binary deletes the files.
func Main(m *testing.M) {
	code := m.Run()
	if err := stop(); err != nil {
		fmt.Fprintln(os.Stderr, "stop PostgreSQL for tests:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// ensureServer returns the server, and starts it at the first call.
func ensureServer(ctx context.Context) (*server, error) {
	starting.Lock()
	defer starting.Unlock()
	if current != nil {
		return current, nil
	}
	s := &server{templates: map[string]string{}}
	address := os.Getenv("TEST_DATABASE_URL")
	if address == "" {
		clearStale(ctx)
		s.dir = filepath.Join(private.Scratch(), folderPrefix+strings.ToLower(rand.Text()[:16]))
		var err error
		s.private, err = private.Start(ctx, private.Config{Dir: s.dir, MaxConnections: 200})
		if err != nil {
			return nil, errors.Join(err, private.Remove(ctx, s.dir))
		}
		address = s.private.URL(private.Database)
	}
	var err error
	if s.address, err = url.Parse(address); err != nil || s.address.Scheme == "" {
		return nil, errors.New("TEST_DATABASE_URL must have the form postgres://user:password@host:port/database")
	}
	current = s
	if s.private != nil {
		return s, s.chooseStrategy(ctx)
	}
	return s, nil
}

func (s *server) chooseStrategy(ctx context.Context) error {
	return s.administer(ctx, func(admin *pgx.Conn) error {
		var known bool
		err := admin.QueryRow(ctx, `SELECT current_setting('server_version_num')::int >= 150000`).Scan(&known)
		if known {
			s.strategy = ` STRATEGY file_copy`
		}
		return err
	})
}

func stop() error {
	starting.Lock()
	defer starting.Unlock()
	if current == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), stepTimeout)
	defer cancel()
	s := current
	current = nil
	if s.private == nil {
		return errors.Join(s.dropTemplates(ctx), s.closeAdmin(ctx))
	}
	return errors.Join(s.closeAdmin(ctx), s.private.Stop(ctx), private.Remove(ctx, s.dir))
}

func (s *server) dropTemplates(ctx context.Context) error {
	var failed error
	for _, name := range s.templates {
		failed = errors.Join(failed, s.exec(ctx, `DROP DATABASE `+name+` WITH (FORCE)`))
	}
	return failed
}

func (s *server) closeAdmin(ctx context.Context) error {
	s.administering.Lock()
	defer s.administering.Unlock()
	if s.admin == nil {
		return nil
	}
	return s.admin.Close(ctx)
}

func (s *server) url(database string) string {
	address := *s.address
	address.Path = "/" + database
	return address.String()
}

// exec runs a statement outside the databases of the tests.
func (s *server) exec(ctx context.Context, sql string) error {
	return s.administer(ctx, func(admin *pgx.Conn) error {
		_, err := admin.Exec(ctx, sql)
		return err
	})
}

// terminateConnections closes the present connections to a database, and waits until they are closed.
func (s *server) terminateConnections(ctx context.Context, database string) error {
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	return s.administer(ctx, func(admin *pgx.Conn) error {
		var pids []int32
		err := admin.QueryRow(ctx, `SELECT coalesce(array_agg(pid), '{}') FROM pg_stat_activity
			WHERE datname = $1 AND backend_type = 'client backend'`, database).Scan(&pids)
		for left := len(pids); err == nil && left > 0; {
			err = admin.QueryRow(ctx, `SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
				WHERE datname = $1 AND pid = ANY($2)`, database, pids).Scan(&left)
			<-tick.C
		}
		return err
	})
}

func (s *server) administer(ctx context.Context, do func(*pgx.Conn) error) error {
	s.administering.Lock()
	defer s.administering.Unlock()
	if s.admin == nil || s.admin.IsClosed() {
		var err error
		if s.admin, err = pgx.Connect(ctx, s.address.String()); err != nil {
			return err
		}
	}
	return do(s.admin)
}

// folderPrefix marks the clusters of test binaries.
const folderPrefix = "doorward-test-"

// staleAge is the age from which a cluster that is not locked is taken for stale: a running test
// binary locks its cluster at once.
const staleAge = time.Minute

// clearStale removes the clusters of test binaries that were killed. It ignores clusters of other users,
// and clusters that cannot be removed: the next test binary tries again.
func clearStale(ctx context.Context) {
	left, _ := filepath.Glob(filepath.Join(private.Scratch(), folderPrefix+"*")) // the only error is a bad pattern
	for _, dir := range left {
		info, err := os.Lstat(dir)
		if err != nil || time.Since(info.ModTime()) < staleAge {
			continue
		}
		if stat, ok := info.Sys().(*syscall.Stat_t); !ok || int(stat.Uid) != os.Geteuid() {
			continue
		}
		_ = private.Remove(ctx, dir)
	}
}
