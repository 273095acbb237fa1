// Package private runs a PostgreSQL server of our own as a child process, from
// the binaries found on the machine: for standalone, which needs a database
// without asking for one, and for tests (see pgtest).
//
// The server listens on a unix socket in a folder that only its account can
// enter, and nowhere else, so it needs no password. It ends with the process
// that started it, also when that process is killed, and a cluster survives the
// sudden death of either at any moment, its own making included.
//
// Read on in location.go (where a cluster lies), account.go (the user that runs it),
// cluster.go (how it is made and tuned) and postmaster.go (the child process).
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
	"sync/atomic"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// Role is the superuser that owns everything in the cluster, and Database the
// database that Start creates for it.
const (
	Role     = "doorward"
	Database = "doorward"
)

// ErrRunning is what Start returns, with the process id, when another process
// runs the cluster.
var ErrRunning = errors.New("already running")

// stopTimeout is how long a server may take to end at once.
const stopTimeout = 10 * time.Second

// Config says where the cluster lies and how it is run.
type Config struct {
	Dir            string    // the cluster's home, created when missing; a link is followed
	Bin            string    // folder of initdb and postgres; empty: the newest found, or the one that made the cluster
	Durable        bool      // whether a commit survives a crash of the machine; tests do without
	MaxConnections int       // 0 means 100
	Log            io.Writer // the server's log; nil: the file postgres.log in Dir
}

// Server is a running PostgreSQL server.
type Server struct {
	location location
	lock     *os.File
	log      *os.File // nil where Config has one
	sockets  string
	process  *postmaster
	stopping atomic.Bool
	done     chan struct{}
	err      error // set before done is closed
}

// Start makes the cluster if there is none, starts its server, and returns once
// the database Database answers. The context bounds the starting, not the
// server's life.
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
	s.process, err = s.location.account.postmaster(bin, s.location.data(), settings(cfg, s.sockets), log)
	return err
}

// URL returns the address of one of the server's databases, as pgx reads it.
func (s *Server) URL(database string) string { return address(s.sockets, database) }

func address(sockets, database string) string {
	at := url.URL{Scheme: "postgres", User: url.User(Role), Path: "/" + database}
	at.RawQuery = url.Values{"host": {sockets}, "port": {port}, "sslmode": {"disable"}}.Encode()
	return at.String()
}

// Running returns the address of the database Database of the server that another
// process of the same account, or of any if we are root, runs in a folder.
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

// Location is the folder that really holds the cluster, which is not Config.Dir
// where the server's account cannot reach that.
func (s *Server) Location() string { return s.location.dir }

// Done is closed when the server has ended, for whatever reason.
func (s *Server) Done() <-chan struct{} { return s.done }

// Err is nil while the server runs and after a Stop; otherwise it says how the
// server ended, with the end of its log.
func (s *Server) Err() error {
	select {
	case <-s.done:
		return s.err
	default:
		return nil
	}
}

// Stop ends the server: connections are cut, transactions rolled back, and the
// data written out. When the context ends first it is cut off, which costs a
// recovery at the next start, and the error says so. Stopping twice is harmless.
func (s *Server) Stop(ctx context.Context) error {
	s.stopping.Store(true)
	s.process.signal(syscall.SIGINT)
	select {
	case <-s.done:
		return nil
	case <-ctx.Done():
	}
	s.process.signal(syscall.SIGQUIT)
	select {
	case <-s.done:
	case <-time.After(stopTimeout):
		s.process.signal(syscall.SIGKILL)
		<-s.done
	}
	return fmt.Errorf("PostgreSQL was cut off and will recover at its next start: %w", context.Cause(ctx))
}

func (s *Server) watch() {
	err := s.process.wait()
	if !s.stopping.Load() {
		s.err = fmt.Errorf("PostgreSQL in %s ended: %w", s.location.dir, err)
	}
	s.release()
	close(s.done)
}

// release leaves the cluster to the next launcher.
func (s *Server) release() {
	s.location.removeSocketFolder()
	if s.log != nil {
		_ = s.log.Close()
	}
	unlock(s.lock)
}

// awaitReady waits for the server's own word that it takes connections, so that
// a long recovery is waited for and a refusal is reported at once.
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

// ready reads the status line that the postmaster keeps in its lock file.
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
	err = conn.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)`, Database).Scan(&exists)
	if err != nil || exists {
		return err
	}
	_, err = conn.Exec(ctx, `CREATE DATABASE `+Database)
	return err
}

// Remove deletes a cluster that nobody runs, wherever it lies, and Dir with it.
// It returns ErrRunning if somebody does.
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
