// Command demo is an example of an integration (relying party, client application): a shop
// and a club that sign their users in by OpenID Connect (openid.go), and a library that does it by
// signed requests (signedrequest.go). shop.go is what they share, setup.go makes the applications in
// Doorward. The command starts standalone where none runs.
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
	"slices"
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

// demoSite is one of the three applications, and the address that it listens on.
type demoSite struct {
	Title    string
	name     string
	variable string
	host     string // host and port, of the environment variable or the default
	byOpenID bool
	listener net.Listener
}

// Address is where browsers find the application.
func (a *demoSite) Address() string { return "http://" + a.host }

// listen opens the addresses of the applications, before anything is started, so that a port
// that is in use fails at once.
func listen(ctx context.Context) ([]*demoSite, error) {
	sites := []*demoSite{
		{name: "Demo shop", Title: "the shop", variable: "DEMO_SHOP_LISTEN", host: "localhost:8081", byOpenID: true},
		{name: "Demo club", Title: "the club", variable: "DEMO_CLUB_LISTEN", host: "localhost:8082", byOpenID: true},
		{name: "Demo library", Title: "the library", variable: "DEMO_LIBRARY_LISTEN", host: "localhost:8083"},
	}
	for _, site := range sites {
		site.host = cmp.Or(os.Getenv(site.variable), site.host)
		var err error
		if site.listener, err = (&net.ListenConfig{}).Listen(ctx, "tcp", site.host); err != nil {
			return nil, fmt.Errorf("%s cannot listen, choose another address with %s: %w", site.Title, site.variable, err)
		}
	}
	return sites, nil
}

// run serves the applications until the context ends.
func run(ctx context.Context) error {
	sites, err := listen(ctx)
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
	failed := make(chan error, len(sites))
	for _, site := range sites {
		s, err := open(ctx, d, site)
		if err != nil {
			return fmt.Errorf("make the application %q: %w", site.name, err)
		}
		s.others = slices.DeleteFunc(slices.Clone(sites), func(other *demoSite) bool { return other == site })
		server := &http.Server{Handler: s.routes(), ReadHeaderTimeout: 10 * time.Second}
		go func() { failed <- server.Serve(site.listener) }()
		defer func() { _ = server.Close() }()
	}
	fmt.Print(`
The shop is at ` + sites[0].Address() + `, the club at ` + sites[1].Address() + `, the library at ` + sites[2].Address() + `.
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

// open makes an application in Doorward, and returns it with its way to sign users in.
func open(ctx context.Context, d *deployment, site *demoSite) (*shop, error) {
	callback := site.Address() + "/callback"
	application, err := d.findOrMakeApplication(ctx, site.name, callback)
	if err != nil {
		return nil, err
	}
	s := &shop{deployment: d, application: application, sessions: map[string]session{}}
	if !site.byOpenID {
		s.way = &signedRequests{d, application, callback}
		return s, nil
	}
	s.way, err = newOpenID(ctx, d, application, site.Address())
	return s, err
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
