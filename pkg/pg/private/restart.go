package private

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// LacksFiles reports whether the files of the server were replaced while it runs, as by an update of its package: a
// new session cannot load PL/pgSQL (58P01). An error is another failure of the server.
func (s *Server) LacksFiles(ctx context.Context) (bool, error) {
	conn, err := pgx.Connect(ctx, s.URL(Database))
	if err != nil {
		return false, err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	_, err = conn.Exec(ctx, `DO 'BEGIN END'`)
	if failure, ok := errors.AsType[*pgconn.PgError](err); ok && failure.Code == "58P01" {
		return true, nil
	}
	return false, err
}

// Restart stops the server (fast shutdown) and starts it again on the same socket, with the programs that are on the
// machine now. Where none of the cluster's version is there, the server runs on. Done is not closed meanwhile, unless
// the server does not start again.
func (s *Server) Restart(ctx context.Context) error {
	bin, err := binariesFor(s.bin, s.location.version())
	if err == nil {
		err = s.location.account.canRun(bin)
	}
	if err != nil {
		return fmt.Errorf("restart PostgreSQL in %s: %w", s.location.dir, err)
	}
	started := make(chan struct{})
	s.mu.Lock()
	s.restart = func() (*postmaster, error) {
		defer close(started)
		return s.launch(bin)
	}
	s.mu.Unlock()
	s.signal(syscall.SIGINT)
	slow := time.AfterFunc(stopTimeout, func() { s.signal(syscall.SIGQUIT) })
	select {
	case <-started:
		slow.Stop()
	case <-s.done:
		slow.Stop()
		return s.Err()
	}
	return s.awaitReady(ctx)
}

// signal sends a signal to the postmaster.
func (s *Server) signal(signal syscall.Signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.process.signal(signal)
}

// startAgain starts the next postmaster after one has ended, if Restart has asked for it.
func (s *Server) startAgain() (restarted bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	restart := s.restart
	s.restart = nil
	if restart == nil || s.stopping.Load() {
		return false, nil
	}
	next, err := restart()
	if err != nil {
		return false, fmt.Errorf("restart PostgreSQL in %s: %w", s.location.dir, err)
	}
	s.process = next
	return true, nil
}
