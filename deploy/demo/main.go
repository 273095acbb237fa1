// Command demo is an example of an integration (relying party, client application): a shop
// and a club that sign their users in through the hosted pages of Doorward. shop.go is what
// an application has to do, setup.go makes the two applications in Doorward. The command
// starts standalone where none runs.
package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

// startTimeout bounds the start of standalone.
const startTimeout = 2 * time.Minute

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

// run serves the two applications until the context ends.
func run(ctx context.Context) error {
	folder := os.Getenv("DOORWARD_DATA_DIR")
	if folder == "" {
		folder = ".doorward"
	}
	d, err := connect(ctx, folder)
	if err != nil {
		stop, err := startStandalone(ctx, filepath.Join(filepath.Dir(os.Args[0]), "doorward"))
		if err != nil {
			return err
		}
		defer stop()
		if d, err = awaitStandalone(ctx, folder); err != nil {
			return err
		}
	}
	failed := make(chan error, 2)
	for _, a := range []struct{ name, address, callback string }{
		{"Demo shop", "localhost:8081", "http://localhost:8081/callback"},
		{"Demo club", "localhost:8082", "http://localhost:8082/callback"},
	} {
		application, err := d.findOrMakeApplication(ctx, a.name, a.callback)
		if err != nil {
			return fmt.Errorf("make the application %q: %w", a.name, err)
		}
		s := &shop{deployment: d, application: application, callback: a.callback, sessions: map[string]session{}}
		server := &http.Server{Addr: a.address, Handler: s.routes(), ReadHeaderTimeout: 10 * time.Second}
		go func() { failed <- server.ListenAndServe() }()
		defer func() { _ = server.Close() }()
	}
	fmt.Print(`
The shop is at http://localhost:8081 and the club at http://localhost:8082.
Sign in as ` + email + ` with the password ` + password + `.
The browser warns of the certificate: it is this machine's own.
Ctrl-C stops everything.
`)
	select {
	case <-ctx.Done():
		return nil
	case err := <-failed:
		return err
	}
}

// startStandalone runs standalone. stop stops it and waits for its end.
func startStandalone(ctx context.Context, binary string) (stop func(), err error) {
	command := exec.CommandContext(ctx, binary)
	command.Stdout, command.Stderr = os.Stdout, os.Stderr
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) }
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("start standalone: %w", err)
	}
	return func() {
		_ = command.Cancel()
		_ = command.Wait()
	}, nil
}

// awaitStandalone waits until standalone answers.
func awaitStandalone(ctx context.Context, folder string) (*deployment, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		d, err := connect(ctx, folder)
		if err == nil {
			return d, nil
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(errors.New("standalone does not answer"), err)
		case <-tick.C:
		}
	}
}
