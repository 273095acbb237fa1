// Command demo is an example of an integration (relying party, client application): a shop
// and a club that sign their users in through the hosted pages of Doorward. shop.go is what
// an application has to do, setup.go makes the two applications in Doorward. The command
// starts standalone where none runs.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
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

// demoSite is one of the two applications, and the address that it listens on.
type demoSite struct {
	name, title string
	host        string // host and port, of the environment variable or the default
	listener    net.Listener
}

func (a *demoSite) address() string { return "http://" + a.host }

// listen opens the addresses of both applications, before anything is started, so that a port
// that is in use fails at once.
func listen(ctx context.Context) (shop, club *demoSite, err error) {
	shop = &demoSite{name: "Demo shop", title: "the shop", host: "localhost:8081"}
	club = &demoSite{name: "Demo club", title: "the club", host: "localhost:8082"}
	for variable, site := range map[string]*demoSite{"DEMO_SHOP_LISTEN": shop, "DEMO_CLUB_LISTEN": club} {
		site.host = cmp.Or(os.Getenv(variable), site.host)
		if site.listener, err = (&net.ListenConfig{}).Listen(ctx, "tcp", site.host); err != nil {
			return shop, club, fmt.Errorf("%s cannot listen, choose another address with %s: %w", site.title, variable, err)
		}
	}
	return shop, club, nil
}

// run serves the two applications until the context ends.
func run(ctx context.Context) error {
	shopSite, clubSite, err := listen(ctx)
	if err != nil {
		return err
	}
	folder := os.Getenv("DOORWARD_DATA_DIR")
	if folder == "" {
		folder = ".doorward"
	}
	d, err := connect(ctx, folder)
	if err != nil {
		standalone, err := startStandalone(ctx, filepath.Join(filepath.Dir(os.Args[0]), "doorward"))
		if err != nil {
			return err
		}
		defer standalone.stop()
		if d, err = standalone.await(ctx, folder); err != nil {
			return err
		}
	}
	failed := make(chan error, 2)
	for site, other := range map[*demoSite]*demoSite{shopSite: clubSite, clubSite: shopSite} {
		callback := site.address() + "/callback"
		application, err := d.findOrMakeApplication(ctx, site.name, callback)
		if err != nil {
			return fmt.Errorf("make the application %q: %w", site.name, err)
		}
		s := &shop{deployment: d, application: application, callback: callback, other: other, sessions: map[string]session{}}
		server := &http.Server{Handler: s.routes(), ReadHeaderTimeout: 10 * time.Second}
		go func() { failed <- server.Serve(site.listener) }()
		defer func() { _ = server.Close() }()
	}
	fmt.Print(`
The shop is at ` + shopSite.address() + ` and the club at ` + clubSite.address() + `.
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

// standalone is the process of standalone that the demo has started.
type standalone struct {
	command *exec.Cmd
	ended   chan error // has its end
}

func startStandalone(ctx context.Context, binary string) (*standalone, error) {
	s := &standalone{exec.CommandContext(ctx, binary), make(chan error, 1)}
	s.command.Stdout, s.command.Stderr = os.Stdout, os.Stderr
	s.command.Cancel = func() error { return s.command.Process.Signal(syscall.SIGTERM) }
	if err := s.command.Start(); err != nil {
		return nil, fmt.Errorf("start standalone: %w", err)
	}
	go func() {
		s.ended <- s.command.Wait()
		close(s.ended)
	}()
	return s, nil
}

// stop stops standalone and waits for its end.
func (s *standalone) stop() {
	_ = s.command.Cancel()
	for range s.ended { // closed at the end
	}
}

// await waits until standalone answers, and no longer than it runs.
func (s *standalone) await(ctx context.Context, folder string) (*deployment, error) {
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
		case err := <-s.ended:
			return nil, fmt.Errorf("standalone has ended, its last lines say why: %w", err)
		case <-tick.C:
		}
	}
}
