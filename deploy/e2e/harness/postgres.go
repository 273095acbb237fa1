package harness

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/doorward/doorward/deploy/e2e"
	"github.com/doorward/doorward/pkg/pg/private"
)

// Postgres is a PostgreSQL on a port of loopback, for tests that kill the server, promote a
// standby in its place (failover), or connect its clients through a proxy.
type Postgres struct {
	*Daemon

	// Address is its host and port.
	Address string

	config PostgresConfig
	bin    string
}

// PostgresConfig is the configuration of a Postgres.
type PostgresConfig struct {
	// Dir is its folder; its log is beside it.
	Dir string

	// Settings are those of the server, each name=value.
	Settings []string

	// With an Authority the server takes only connections to localhost that are
	// encrypted, and asks for the Password.
	Authority *Authority
	Password  string
}

const postgresLimit = time.Minute

// StartPostgres makes a cluster and starts it.
func StartPostgres(ctx context.Context, config PostgresConfig) (*Postgres, error) {
	p, err := newPostgres(config)
	if err != nil {
		return nil, err
	}
	options := []string{"--auth", "trust"}
	if config.Authority != nil {
		password := filepath.Join(config.Dir, "password")
		if err := errors.Join(os.WriteFile(password, []byte(config.Password), 0o600), ChownToServers(password)); err != nil {
			return nil, fmt.Errorf("write the password of PostgreSQL: %w", err)
		}
		options = []string{"--auth", "scram-sha-256", "--pwfile", password}
	}
	if err := p.run(ctx, "initdb", append(options, "--pgdata", p.data(), "--username", private.Role, "--no-sync")...); err != nil {
		return nil, err
	}
	if err := p.configure(); err != nil {
		return nil, fmt.Errorf("configure PostgreSQL: %w", err)
	}
	if err := p.Start(ctx); err != nil {
		return nil, err
	}
	return p, p.Query(ctx, "postgres", "CREATE DATABASE "+private.Database)
}

// configure adds the settings to the configuration files of initdb. A standby copies these files.
func (p *Postgres) configure() error {
	settings := p.config.Settings
	if authority := p.config.Authority; authority != nil {
		cert, key, err := authority.Issue(p.config.Dir, "localhost")
		err = errors.Join(err, os.Chmod(authority.CAFile, 0o644), ChownToServers(cert, key),
			os.WriteFile(filepath.Join(p.data(), "pg_hba.conf"), []byte("hostssl all,replication all 127.0.0.1/32 scram-sha-256\n"), 0))
		if err != nil {
			return err
		}
		settings = append([]string{"ssl = on", "ssl_cert_file = '" + cert + "'", "ssl_key_file = '" + key + "'"}, settings...)
	}
	file, err := os.OpenFile(filepath.Join(p.data(), "postgresql.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = file.WriteString("\n" + strings.Join(settings, "\n") + "\n")
	return errors.Join(err, file.Close())
}

// Standby copies the cluster into a folder and starts the copy as a streaming
// standby. From then on a commit waits until the standby has it.
func (p *Postgres) Standby(ctx context.Context, dir string) (*Postgres, error) {
	config := p.config
	config.Dir = dir
	s, err := newPostgres(config)
	if err != nil {
		return nil, err
	}
	if err := s.run(ctx, "pg_basebackup", "--dbname", p.URL("postgres"), "--pgdata", s.data(),
		"--checkpoint", "fast", "--no-sync", "--wal-method", "stream", "--write-recovery-conf"); err != nil {
		return nil, err
	}
	if err := s.Start(ctx); err != nil {
		return nil, err
	}
	for _, statement := range []string{"ALTER SYSTEM SET synchronous_standby_names = '*'", "SELECT pg_reload_conf()"} {
		if err := p.Query(ctx, "postgres", statement); err != nil {
			return nil, errors.Join(err, s.Kill())
		}
	}
	return s, nil
}

// Promote makes a standby a primary.
func (p *Postgres) Promote(ctx context.Context) error {
	return p.run(ctx, "pg_ctl", "promote", "--wait", "--pgdata", p.data())
}

// URL is the address of a database, with the certificate checked in full where there
// is one. Further servers of the same data follow the first.
func (p *Postgres) URL(database string, more ...*Postgres) string {
	hosts := []string{p.Address}
	for _, other := range more {
		hosts = append(hosts, other.Address)
	}
	at, user, query := strings.Join(hosts, ","), private.Role, url.Values{"sslmode": {"disable"}}
	if authority := p.config.Authority; authority != nil {
		at, user = strings.ReplaceAll(at, "127.0.0.1", "localhost"), user+":"+p.config.Password
		query = url.Values{"sslmode": {"verify-full"}, "sslrootcert": {authority.CAFile}}
	}
	if len(more) > 0 {
		query.Set("target_session_attrs", "read-write")
	}
	return "postgres://" + user + "@" + at + "/" + database + "?" + query.Encode()
}

// Query runs one statement.
func (p *Postgres) Query(ctx context.Context, database, statement string, args ...any) error {
	return InDatabase(ctx, p.URL(database), func(db *pgx.Conn) error {
		_, err := db.Exec(ctx, statement, args...)
		return err
	})
}

// InDatabase calls do with a connection of its own.
func InDatabase(ctx context.Context, address string, do func(db *pgx.Conn) error) error {
	db, err := pgx.Connect(ctx, address)
	if err != nil {
		return err
	}
	return errors.Join(do(db), db.Close(context.WithoutCancel(ctx)))
}

// Kill ends the server and its children as kill -9 does: the crash of its machine.
func (p *Postgres) Kill() error {
	children := p.children()
	err := p.Daemon.Kill()
	return errors.Join(err, signalAll(children, syscall.SIGKILL))
}

// Start starts the server again. It retries until the files of a crashed server do not prevent the start.
func (p *Postgres) Start(ctx context.Context) error {
	return e2e.AwaitFor(ctx, postgresLimit, p.Name+" to start", p.Daemon.Start)
}

func newPostgres(config PostgresConfig) (*Postgres, error) {
	bin, err := private.Find(os.Getenv("DOORWARD_POSTGRES_BIN"))
	if err != nil {
		return nil, err
	}
	port := strconv.Itoa(FreePort())
	if err := errors.Join(os.MkdirAll(config.Dir, 0o755), ChownToServers(config.Dir)); err != nil {
		return nil, fmt.Errorf("make the folder of PostgreSQL: %w", err)
	}
	p := &Postgres{Address: net.JoinHostPort("127.0.0.1", port), config: config, bin: bin}
	program, args := Unprivileged(filepath.Join(bin, "postgres"), "-D", p.data(),
		"-c", "listen_addresses=127.0.0.1", "-c", "port="+port, "-c", "unix_socket_directories=")
	p.Daemon = NewDaemon(filepath.Base(config.Dir), config.Dir+".log", func(ctx context.Context) error {
		return p.Query(ctx, "postgres", "SELECT 1")
	}, program, args...)
	p.Daemon.dir, p.Daemon.env = "/", p.environment()
	return p, nil
}

func (p *Postgres) data() string { return filepath.Join(p.config.Dir, "data") }

// environment has a HOME that the account can read: libpq looks for certificates there.
func (p *Postgres) environment() []string { return environment("HOME=" + p.config.Dir) }

// run runs a program of PostgreSQL as its user.
func (p *Postgres) run(ctx context.Context, program string, args ...string) error {
	name, args := Unprivileged(filepath.Join(p.bin, program), args...)
	command := exec.CommandContext(ctx, name, args...)
	command.Dir, command.Env = "/", p.environment()
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", program, err, out)
	}
	return nil
}

// children are the ids of the server's processes.
func (p *Postgres) children() (ids []int) {
	pid := p.PID()
	for _, process := range Processes(pid) {
		if process.PID != pid {
			ids = append(ids, process.PID)
		}
	}
	return ids
}

// Signal sends a signal to the server and its children.
func (p *Postgres) Signal(signal os.Signal) error {
	return errors.Join(signalAll(p.children(), signal), p.Daemon.Signal(signal))
}

// AwaitStandby returns when a standby confirms commits.
func (p *Postgres) AwaitStandby(ctx context.Context) error {
	return e2e.AwaitFor(ctx, postgresLimit, "the standby", func(ctx context.Context) error {
		return p.Query(ctx, "postgres", "SELECT 1 / count(*) FROM pg_stat_replication WHERE sync_state = 'sync'")
	})
}

// Remove deletes a cluster that was killed.
func (p *Postgres) Remove() error { return os.RemoveAll(p.config.Dir) }
