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

// server is what the test binary has its databases on.
type server struct {
	address *url.URL        // of the database to administer from
	private *private.Server // nil: somebody else's server
	dir     string

	// strategy is how a template is copied: file by file, which takes a third of
	// the time where nothing waits for the disk. Older versions know no other way.
	strategy string

	administering sync.Mutex
	admin         *pgx.Conn

	templating sync.Mutex
	templates  map[uintptr]string // by the function that migrated it
}

var (
	starting sync.Mutex
	current  *server
)

// Main runs the package's tests, stops the server if one was started, and exits.
// A binary that is killed, or has no Main, loses its server with its process, and
// the next binary clears away the files.
func Main(m *testing.M) {
	code := m.Run()
	if err := stop(); err != nil {
		fmt.Fprintln(os.Stderr, "stop PostgreSQL for tests:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// running returns the server and starts it the first time.
func ensureServer(ctx context.Context) (*server, error) {
	starting.Lock()
	defer starting.Unlock()
	if current != nil {
		return current, nil
	}
	s := &server{templates: map[uintptr]string{}}
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

// cut ends the connections that a database has now, and returns when they are gone.
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

// staleAge is the age at which a cluster that nobody has locked was left behind:
// a living binary locks its own at once.
const staleAge = time.Minute

// clearStale removes the clusters of binaries that were killed. Others may be
// writing in the same folder, so it touches only what is this user's, and what
// cannot be removed now is the next binary's to try.
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
