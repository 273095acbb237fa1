package harness

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/doorward/doorward/deploy/e2e"
	"github.com/doorward/doorward/pkg/pg/private"
)

// Postgres is a PostgreSQL on a port of loopback, for tests that kill it, promote a
// standby in its place, or lead its clients through a proxy.
type Postgres struct {
	*Daemon

	// Address is its host and port.
	Address string

	bin, dir string
}

const postgresLimit = time.Minute

// StartPostgres makes a cluster in a folder and starts it, with the settings, each
// name=value.
func StartPostgres(ctx context.Context, dir string, settings ...string) (*Postgres, error) {
	p, err := newPostgres(dir)
	if err != nil {
		return nil, err
	}
	if err := p.run(ctx, "initdb", "--pgdata", p.data(), "--username", private.Role, "--auth", "trust", "--no-sync"); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(filepath.Join(p.data(), "postgresql.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return nil, fmt.Errorf("configure PostgreSQL: %w", err)
	}
	_, err = file.WriteString("\n" + strings.Join(settings, "\n") + "\n")
	if err := errors.Join(err, file.Close()); err != nil {
		return nil, fmt.Errorf("configure PostgreSQL: %w", err)
	}
	if err := p.Start(ctx); err != nil {
		return nil, err
	}
	return p, p.Query(ctx, "postgres", "CREATE DATABASE "+private.Database)
}

// Standby copies the cluster into a folder and starts the copy as a streaming
// standby. From then on a commit waits until the standby has it.
func (p *Postgres) Standby(ctx context.Context, dir string) (*Postgres, error) {
	s, err := newPostgres(dir)
	if err != nil {
		return nil, err
	}
	host, port, _ := strings.Cut(p.Address, ":")
	if err := s.run(ctx, "pg_basebackup", "--host", host, "--port", port, "--username", private.Role, "--pgdata", s.data(),
		"--checkpoint", "fast", "--no-sync", "--wal-method", "stream", "--write-recovery-conf"); err != nil {
		return nil, err
	}
	if err := s.Start(ctx); err != nil {
		return nil, err
	}
	if err := p.Query(ctx, "postgres", "ALTER SYSTEM SET synchronous_standby_names = '*'"); err != nil {
		return nil, errors.Join(err, s.Kill())
	}
	if err := p.Query(ctx, "postgres", "SELECT pg_reload_conf()"); err != nil {
		return nil, errors.Join(err, s.Kill())
	}
	return s, nil
}

// Promote makes a standby a primary.
func (p *Postgres) Promote(ctx context.Context) error {
	return p.run(ctx, "pg_ctl", "promote", "--wait", "--pgdata", p.data())
}

// URL is the address of the product's database.
func (p *Postgres) URL() string { return p.url(private.Database) }

func (p *Postgres) url(database string) string {
	return "postgres://" + private.Role + "@" + p.Address + "/" + database + "?sslmode=disable"
}

// Query runs one statement.
func (p *Postgres) Query(ctx context.Context, database, statement string, args ...any) error {
	connection, err := pgx.Connect(ctx, p.url(database))
	if err != nil {
		return err
	}
	defer connection.Close(ctx)
	_, err = connection.Exec(ctx, statement, args...)
	return err
}

// Kill ends the server and its children as kill -9 does: the crash of its machine.
func (p *Postgres) Kill() error {
	children := p.children()
	err := p.Daemon.Kill()
	for _, child := range children {
		if process, failure := os.FindProcess(child); failure == nil {
			_ = process.Kill() // it may have ended
		}
	}
	return err
}

// Start starts it again, when what a crash left behind is gone.
func (p *Postgres) Start(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, postgresLimit)
	defer cancel()
	for {
		err := p.Daemon.Start(ctx)
		if err == nil || ctx.Err() != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(time.Second):
		}
	}
}

func newPostgres(dir string) (*Postgres, error) {
	bin, err := private.Find(os.Getenv("DOORWARD_POSTGRES_BIN"))
	if err != nil {
		return nil, err
	}
	address, err := FreeAddress()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("make the folder of PostgreSQL: %w", err)
	}
	p := &Postgres{Address: address, bin: bin, dir: dir}
	program := []string{filepath.Join(bin, "postgres")}
	if os.Geteuid() == 0 { // PostgreSQL refuses to run as root
		if _, err := user.Lookup("postgres"); err != nil {
			return nil, err
		}
		if out, err := exec.Command("chown", "postgres", dir).CombinedOutput(); err != nil {
			return nil, fmt.Errorf("chown %s: %w\n%s", dir, err, out)
		}
		program = append([]string{"/usr/bin/setpriv", "--reuid", "postgres", "--regid", "postgres", "--clear-groups",
			"--pdeathsig", "KILL", "--"}, program...)
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	program = append(program, "-D", p.data(), "-c", "listen_addresses="+host, "-c", "port="+port, "-c", "unix_socket_directories=")
	p.Daemon = NewDaemon("postgres", filepath.Join(filepath.Dir(dir), filepath.Base(dir)+".log"), func(ctx context.Context) error {
		return p.Query(ctx, "postgres", "SELECT 1")
	}, program[0], program[1:]...)
	p.Daemon.dir = "/"
	return p, nil
}

func (p *Postgres) data() string { return filepath.Join(p.dir, "data") }

// run runs a program of PostgreSQL as its user.
func (p *Postgres) run(ctx context.Context, program string, args ...string) error {
	name := filepath.Join(p.bin, program)
	if os.Geteuid() == 0 {
		name, args = "/usr/sbin/runuser", append([]string{"-u", "postgres", "--", name}, args...)
	}
	command := exec.CommandContext(ctx, name, args...)
	command.Dir, command.Env = "/", environment()
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", program, err, out)
	}
	return nil
}

// children are the ids of the server's processes.
func (p *Postgres) children() (ids []int) {
	pid := p.PID()
	if pid == 0 {
		return nil
	}
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	if err != nil {
		return nil
	}
	for _, field := range strings.Fields(string(raw)) {
		var child int
		if _, err := fmt.Sscan(field, &child); err == nil {
			ids = append(ids, child)
		}
	}
	return ids
}

// Signal sends a signal to the server and its children.
func (p *Postgres) Signal(signal os.Signal) error {
	for _, child := range p.children() {
		if process, err := os.FindProcess(child); err == nil {
			_ = process.Signal(signal) // it may have ended
		}
	}
	return p.Daemon.Signal(signal)
}

// AwaitStandby returns when a standby confirms commits.
func (p *Postgres) AwaitStandby(ctx context.Context) error {
	return e2e.AwaitFor(ctx, postgresLimit, "the standby", func(ctx context.Context) error {
		return p.Query(ctx, "postgres", "SELECT 1 / count(*) FROM pg_stat_replication WHERE sync_state = 'sync'")
	})
}

// Remove deletes a cluster that was killed.
func (p *Postgres) Remove() error { return os.RemoveAll(p.dir) }
