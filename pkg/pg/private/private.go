// Package private runs a private (embedded) PostgreSQL server as a child process, from the binaries
// found on the machine: for standalone, and for tests (package pgtest).
//
// The server listens only on a unix socket, in a folder that only its account can enter, so that it
// needs no password. It stops when the process that started it ends, also when that is killed. The
// data survives a kill of either process at any moment, also while the cluster is being created.
//
// location.go has the folder of a cluster, account.go the user that runs it, cluster.go its creation
// (initdb) and settings, and postmaster.go the child process.
package private

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// Role is the superuser of the cluster, and Database the database that Start creates.
const (
	Role     = "doorward"
	Database = "doorward"
)

// ErrRunning is what Start returns, with the process id, when another process
// runs the cluster.
var ErrRunning = errors.New("already running")

// stopTimeout is how long a server may take for an immediate shutdown.
const stopTimeout = 10 * time.Second

// Config describes a cluster and its server.
type Config struct {
	Dir string // folder of the cluster, created if it does not exist; a symbolic link is followed
	// folder of initdb and postgres; empty: the newest on the machine, or the version that created the cluster
	Bin            string
	Durable        bool      // fsync: a commit survives a crash of the machine; false for tests
	MaxConnections int       // 0 means 100
	Log            io.Writer // the server's log; nil: the file postgres.log in Dir
}

// Server is a running PostgreSQL server.
type Server struct {
	location location
	lock     *os.File
	log      *os.File // nil where Config has one
	sockets  string
	bin      string // Config.Bin
	launch   func(bin string) (*postmaster, error)
	stopping atomic.Bool

	mu      sync.Mutex
	process *postmaster
	restart func() (*postmaster, error) // starts the next postmaster after this one: Restart

	done chan struct{}
	err  error // set before done is closed
}

// Start creates the cluster if there is none, starts its server, and returns when the database
// Database answers. The context bounds the start only; the server runs on when it ends.
func Start(ctx context.Context, cfg Config) (*Server, error) {
	at, err := locate(cfg.Dir)
	if err != nil {
		return nil, err
	}
	lock, err := at.lock(ctx)
	if err != nil {
		return nil, err
	}
	s := &Server{location: at, lock: lock, done: make(chan struct{})}
	if err := s.startServer(ctx, cfg); err != nil {
		s.release()
		return nil, fmt.Errorf("PostgreSQL in %s: %w", at.dir, err)
	}
	go s.watch()
	if err := s.awaitReady(ctx); err != nil {
		cut, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
		defer cancel()
		return nil, errors.Join(err, s.Stop(cut))
	}
	return s, nil
}

func (s *Server) startServer(ctx context.Context, cfg Config) error {
	bin, err := binariesFor(cfg.Bin, s.location.version())
	if err != nil {
		return err
	}
	if err := s.location.account.canRun(bin); err != nil {
		return err
	}
	if err := s.location.stopOrphanedServer(ctx); err != nil {
		return err
	}
	if err := s.location.initialize(ctx, bin, cfg.Durable); err != nil {
		return err
	}
	if s.sockets, err = s.location.socketFolder(); err != nil {
		return err
	}
	log := cfg.Log
	if log == nil {
		if s.log, err = s.location.openLog(); err != nil {
			return err
		}
		log = s.log
	}
	s.bin, s.launch = cfg.Bin, func(bin string) (*postmaster, error) {
		return s.location.account.postmaster(bin, s.location.data(), settings(cfg, s.sockets), log)
	}
	s.process, err = s.launch(bin)
	return err
}

// URL returns the address of one of the server's databases, as pgx reads it.
func (s *Server) URL(database string) string { return address(s.sockets, database) }

func address(sockets, database string) string {
	at := url.URL{Scheme: "postgres", User: url.User(Role), Path: "/" + database}
	at.RawQuery = url.Values{"host": {sockets}, "port": {port}, "sslmode": {"disable"}}.Encode()
	return at.String()
}

// Running returns the address of the database Database of the server that another process runs in a
// folder: a process of the same account, or of any account if this process is root.
func Running(dir string) (url string, err error) {
	sockets, err := filepath.EvalSymlinks(filepath.Join(dir, "run"))
	if err == nil {
		sockets, err = filepath.Abs(sockets)
	}
	if err != nil {
		return "", fmt.Errorf("no PostgreSQL runs in %s: %w", dir, err)
	}
	return address(sockets, Database), nil
}

// Location returns the folder of the cluster, which is not Config.Dir if the account of the server
// cannot access that.
func (s *Server) Location() string { return s.location.dir }

// Done is closed when the server has ended.
func (s *Server) Done() <-chan struct{} { return s.done }

// Err returns nil while the server runs and after Stop; otherwise how the server ended, with the end
// of its log.
func (s *Server) Err() error {
	select {
	case <-s.done:
		return s.err
	default:
		return nil
	}
}

// Stop stops the server (fast shutdown): it closes connections, rolls back transactions and writes the
// data out. If the context ends first, it kills the server and returns an error; then the next start
// needs a recovery. It may be called twice.
func (s *Server) Stop(ctx context.Context) error {
	s.stopping.Store(true)
	s.signal(syscall.SIGINT)
	select {
	case <-s.done:
		return nil
	case <-ctx.Done():
	}
	s.signal(syscall.SIGQUIT)
	select {
	case <-s.done:
	case <-time.After(stopTimeout):
		s.signal(syscall.SIGKILL)
		<-s.done
	}
	return fmt.Errorf("PostgreSQL was cut off and will recover at its next start: %w", context.Cause(ctx))
}

func (s *Server) watch() {
	for {
		err := s.process.wait()
		restarted, failure := s.startAgain()
		if restarted {
			continue
		}
		if !s.stopping.Load() {
			s.err = errors.Join(failure, fmt.Errorf("PostgreSQL in %s ended: %w", s.location.dir, err))
		}
		break
	}
	s.release()
	close(s.done)
}

// release releases the lock of the cluster.
func (s *Server) release() {
	s.location.removeSocketFolder()
	if s.log != nil {
		_ = s.log.Close()
	}
	unlock(s.lock)
}

// awaitReady waits until the server reports in its lock file that it accepts connections, so that it
// waits for a long recovery, and returns an error at once if the server ends.
func (s *Server) awaitReady(ctx context.Context) error {
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !s.ready() {
		select {
		case <-s.done:
			return s.err
		case <-ctx.Done():
			return fmt.Errorf("PostgreSQL in %s was not ready in time: %w", s.location.dir, context.Cause(ctx))
		case <-tick.C:
		}
	}
	if err := s.ensureDatabase(ctx); err != nil {
		return fmt.Errorf("create database %s: %w", Database, err)
	}
	return nil
}

// ready reads the status line of the postmaster in its lock file.
func (s *Server) ready() bool {
	lines := s.location.lockFile()
	return len(lines) >= 8 && lines[0] == strconv.Itoa(s.process.pid()) && strings.TrimSpace(lines[7]) == "ready"
}

func (s *Server) ensureDatabase(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, s.URL("postgres"))
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	var exists bool
	err = conn.QueryRow(ctx, `SELECT EXISTS (SELECT 1 FROM pg_database WHERE datname = $1)`, Database).Scan(&exists)
	if err != nil || exists {
		return err
	}
	_, err = conn.Exec(ctx, `CREATE DATABASE `+Database)
	return err
}

// Remove deletes a cluster, and Dir with it. It returns ErrRunning if a process runs the cluster.
func Remove(ctx context.Context, dir string) error {
	if _, err := os.Lstat(dir); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	at, err := locate(dir)
	if err != nil {
		return err
	}
	lock, err := at.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock(lock)
	if err := at.stopOrphanedServer(ctx); err != nil {
		return err
	}
	at.removeSocketFolder()
	if err := os.RemoveAll(at.dir); err != nil {
		return err
	}
	return os.RemoveAll(filepath.Clean(dir))
}
