// Package backends starts PostgreSQL, PgBouncer, Redis and Kafka as deployments have them,
// with TLS and passwords, and tests the product's connections to them. Its tests are the quick ones, which make e2e runs too.
// The package failover beside it has the longer ones, with poolers and servers that
// end while clients use them: make backends runs both.
package backends

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/doorward/doorward/deploy/e2e"
	"github.com/doorward/doorward/deploy/e2e/harness"
)

// User and Password are what every server here asks for.
const (
	User     = "doorward"
	Password = "Changeme1-backends"
)

const limit = 2 * time.Minute

// Servers starts servers in a folder, with certificates of one authority, and ends them with
// the test.
type Servers struct {
	testing.TB
	Dir       string
	Authority *harness.Authority
}

// NewServers makes the folder, which is kept when the test fails.
func NewServers(t testing.TB) *Servers {
	t.Helper()
	dir := harness.TestFolder(t)
	authority, err := harness.NewAuthority(dir)
	if err != nil {
		t.Fatal(err)
	}
	return &Servers{t, dir, authority}
}

// Must fails the test on an error.
func (s *Servers) Must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// folder makes a folder that belongs to the account of the servers.
func (s *Servers) folder(name string) string {
	s.Helper()
	dir := filepath.Join(s.Dir, name)
	s.Must(os.MkdirAll(dir, 0o700))
	s.Must(harness.ChownToServers(dir))
	return dir
}

// Write writes a file that the account of the servers owns.
func (s *Servers) Write(path, text string) {
	s.Helper()
	s.Must(os.WriteFile(path, []byte(text), 0o600))
	s.Must(harness.ChownToServers(path))
}

// certificate issues a certificate for names into a folder of a server.
func (s *Servers) certificate(dir string, names ...string) (cert, key string) {
	s.Helper()
	cert, key, err := s.Authority.Issue(dir, names...)
	s.Must(err)
	s.Must(harness.ChownToServers(cert, key))
	return cert, key
}

// start starts a server that refuses to run as root, and ends it with the test.
func (s *Servers) start(name string, ready func(context.Context) error, program string, args ...string) *harness.Daemon {
	s.Helper()
	path, args := harness.Unprivileged(program, args...)
	daemon := harness.NewDaemon(name, filepath.Join(s.Dir, name+".log"), ready, path, args...)
	daemon.Setenv("HOME=" + s.Dir) // where libpq looks for certificates
	s.killAtEnd(daemon, daemon.Kill)
	s.Must(daemon.Start(s.Context()))
	return daemon
}

// killAtEnd ends a server with the test, and shows its log where the test failed.
func (s *Servers) killAtEnd(server *harness.Daemon, kill func() error) {
	harness.AtEnd(s, func() error {
		if s.Failed() {
			s.Log(server.Tail())
		}
		return kill()
	})
}

// accepts returns nil once an address accepts connections.
func accepts(address string) error {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return err
	}
	return conn.Close()
}

// Await waits until probe returns nil.
func (s *Servers) Await(what string, probe func(context.Context) error) {
	s.Helper()
	s.Must(e2e.AwaitFor(s.Context(), limit, what, probe))
}
