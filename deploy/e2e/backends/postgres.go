package backends

import (
	"context"
	"errors"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/doorward/doorward/deploy/e2e/harness"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/pg/private"
	"github.com/doorward/doorward/pkg/secure"
)

// Database is the one of the product.
const Database = "doorward"

// Postgres is a server that takes only encrypted connections with a password.
type Postgres struct {
	*harness.Daemon
	Address string // on 127.0.0.1

	site *Site
	bin  string
	dir  string
}

// StartPostgres starts a server whose certificate is for localhost, with the role
// and the database of the product.
func (s *Site) StartPostgres(name string, settings ...string) *Postgres {
	s.Helper()
	p := s.newPostgres(name)
	s.Write(filepath.Join(s.Dir, "password"), Password)
	s.run(filepath.Join(p.bin, "initdb"), "--pgdata", p.dir, "--username", User, "--auth", "scram-sha-256",
		"--pwfile", filepath.Join(s.Dir, "password"), "--no-sync")
	s.Write(filepath.Join(p.dir, "pg_hba.conf"), "hostssl all,replication all 127.0.0.1/32 scram-sha-256\n")
	p.launch(name, settings)
	p.Exec("CREATE DATABASE " + Database)
	return p
}

// StartStandby starts a server that streams from this one.
func (p *Postgres) StartStandby(name string, settings ...string) *Postgres {
	s := p.site
	s.Helper()
	standby := s.newPostgres(name)
	_, port, err := net.SplitHostPort(p.Address)
	s.Must(err)
	s.run(filepath.Join(p.bin, "pg_basebackup"), "--pgdata", standby.dir, "--write-recovery-conf", "--checkpoint", "fast", "--no-sync",
		"--dbname", "host=localhost port="+port+" user="+User+" sslmode=verify-full sslrootcert="+s.Authority.CAFile)
	standby.launch(name, settings)
	return standby
}

func (s *Site) newPostgres(name string) *Postgres {
	s.Helper()
	bin, err := private.Find(os.Getenv("DOORWARD_POSTGRES_BIN"))
	s.Must(err)
	s.Must(os.Chmod(s.Authority.CAFile, 0o644))
	return &Postgres{site: s, bin: bin, dir: s.folder(name)}
}

func (p *Postgres) launch(name string, settings []string) {
	s := p.site
	s.Helper()
	var port string
	p.Address, port = s.address()
	cert, key := s.certificate(s.folder(name+"-tls"), "localhost")
	args := []string{"-D", p.dir}
	for _, setting := range append([]string{
		"listen_addresses=127.0.0.1", "port=" + port, "unix_socket_directories=", "max_connections=300", "fsync=off",
		"ssl=on", "ssl_cert_file=" + cert, "ssl_key_file=" + key, "log_line_prefix=%m [%p] %a ",
	}, settings...) {
		args = append(args, "-c", setting)
	}
	p.Daemon = s.start(name, p.ready, filepath.Join(p.bin, "postgres"), args...)
}

func (p *Postgres) ready(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, p.URL("postgres"))
	if err != nil {
		return err
	}
	return conn.Close(ctx)
}

// URL is the address of a database, with the certificate checked in full. Further
// servers of the same data follow the first.
func (p *Postgres) URL(database string, more ...*Postgres) string {
	hosts := strings.Replace(p.Address, "127.0.0.1", "localhost", 1)
	for _, other := range more {
		hosts += strings.Replace(","+other.Address, "127.0.0.1", "localhost", 1)
	}
	query := url.Values{"sslmode": {"verify-full"}, "sslrootcert": {p.site.Authority.CAFile}}
	if len(more) > 0 {
		query.Set("target_session_attrs", "read-write")
	}
	return "postgres://" + User + ":" + Password + "@" + hosts + "/" + database + "?" + query.Encode()
}

// Exec runs a statement as the superuser.
func (p *Postgres) Exec(sql string) {
	p.site.Helper()
	conn, err := pgx.Connect(p.site.Context(), p.URL("postgres"))
	p.site.Must(err)
	_, err = conn.Exec(p.site.Context(), sql)
	p.site.Must(errors.Join(err, conn.Close(p.site.Context())))
}

// Value returns the single text of a query.
func (p *Postgres) Value(sql string) (value string, err error) {
	conn, err := pgx.Connect(p.site.Context(), p.URL(Database))
	if err != nil {
		return "", err
	}
	err = conn.QueryRow(p.site.Context(), sql).Scan(&value)
	return value, errors.Join(err, conn.Close(p.site.Context()))
}

// PgBouncer is a pooler in front of a server.
type PgBouncer struct {
	*harness.Daemon
	Address string
}

// StartPgBouncer starts a pooler in a mode, with a database for each schema: all are
// the one of the product, and their sessions see the schema where connected is true.
func (s *Site) StartPgBouncer(name, mode string, to *Postgres, connected bool, schemas ...string) *PgBouncer {
	s.Helper()
	dir := s.folder(name)
	address, port := s.address()
	_, server, err := net.SplitHostPort(to.Address)
	s.Must(err)
	var databases strings.Builder
	for _, schema := range schemas {
		databases.WriteString(schema + " = host=localhost port=" + server + " dbname=" + Database)
		if connected {
			databases.WriteString(" connect_query='SET search_path = " + schema + "; SET ROLE doorward_" + schema + "'")
		}
		databases.WriteString("\n")
	}
	s.Write(filepath.Join(dir, "users.txt"), `"`+User+`" "`+Password+`"`+"\n")
	s.Write(filepath.Join(dir, "pgbouncer.ini"), "[databases]\n"+databases.String()+`[pgbouncer]
listen_addr = 127.0.0.1
listen_port = `+port+`
unix_socket_dir =
auth_type = scram-sha-256
auth_file = `+filepath.Join(dir, "users.txt")+`
pool_mode = `+mode+`
default_pool_size = 3
server_tls_sslmode = verify-full
server_tls_ca_file = `+s.Authority.CAFile+"\n")
	program := "pgbouncer"
	if _, err := os.Stat("/usr/sbin/pgbouncer"); err == nil {
		program = "/usr/sbin/pgbouncer"
	}
	b := &PgBouncer{Address: address}
	b.Daemon = s.start(name, func(context.Context) error {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			return err
		}
		return conn.Close()
	}, program, filepath.Join(dir, "pgbouncer.ini"))
	return b
}

// URL is the address of one of the pooler's databases, with further parameters.
func (b *PgBouncer) URL(database string, parameters url.Values) string {
	return "postgres://" + User + ":" + Password + "@" + b.Address + "/" + database + "?" + parameters.Encode()
}

// Open opens a schema as a service does when it starts.
func (s *Site) Open(address, schema string) (*pg.DB, error) {
	db, err := pg.Open(s.Context(), pg.Config{URL: secure.Secret(address), Schema: schema})
	if err == nil {
		s.Cleanup(db.Close)
	}
	return db, err
}

// Refused wants an error of Open for the schema trial that holds the texts and no password.
func (s *Site) Refused(address string, texts ...string) {
	s.Helper()
	_, err := s.Open(address, "trial")
	if err == nil {
		s.Errorf("%s is accepted", address)
		return
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			s.Errorf("the refusal lacks %q: %v", text, err)
		}
	}
	if strings.Contains(err.Error(), Password) {
		s.Errorf("the refusal holds the password: %v", err)
	}
}
