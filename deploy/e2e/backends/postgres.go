package backends

import (
	"context"
	"net"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/doorward/doorward/deploy/e2e/harness"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/pg/private"
	"github.com/doorward/doorward/pkg/secure"
)

// Database is the name of the product's database.
const Database = private.Database

// Postgres is a server that takes only encrypted connections with a password.
type Postgres struct {
	*harness.Postgres
	servers *Servers
}

// StartPostgres starts a server whose certificate is for localhost, with the role
// and the database of the product.
func (s *Servers) StartPostgres(name string) *Postgres {
	s.Helper()
	server, err := harness.StartPostgres(s.Context(), harness.PostgresConfig{
		Dir: filepath.Join(s.Dir, name), Authority: s.Authority, Password: Password,
		Settings: []string{"max_connections = 300", "fsync = off", "log_line_prefix = '%m [%p] %a '"},
	})
	return s.postgres(server, err)
}

// StartStandby starts a server that streams from this one, and confirms its commits.
func (p *Postgres) StartStandby(name string) *Postgres {
	p.servers.Helper()
	server, err := p.Standby(p.servers.Context(), filepath.Join(p.servers.Dir, name))
	return p.servers.postgres(server, err)
}

func (s *Servers) postgres(server *harness.Postgres, err error) *Postgres {
	s.Helper()
	s.Must(err)
	s.killAtEnd(server.Daemon, server.Kill)
	return &Postgres{server, s}
}

// Exec runs a statement as the superuser.
func (p *Postgres) Exec(sql string) {
	p.servers.Helper()
	p.servers.Must(p.Query(p.servers.Context(), "postgres", sql))
}

// Value returns the single text of a query.
func (p *Postgres) Value(sql string) (value string, err error) {
	err = harness.InDatabase(p.servers.Context(), p.URL(Database), func(db *pgx.Conn) error {
		return db.QueryRow(p.servers.Context(), sql).Scan(&value)
	})
	return value, err
}

// PgBouncer is a pooler in front of a server.
type PgBouncer struct {
	*harness.Daemon
	Address string
}

// StartPgBouncer starts a pooler in a mode, with a database for each schema: all are
// the one of the product, and their sessions see the schema where connected is true.
func (s *Servers) StartPgBouncer(name, mode string, to *Postgres, connected bool, schemas ...string) *PgBouncer {
	s.Helper()
	dir := s.folder(name)
	address := harness.FreeAddress()
	_, port, _ := strings.Cut(address, ":")
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
	program, err := harness.Program("pgbouncer", "pgbouncer")
	s.Must(err)
	b := &PgBouncer{Address: address}
	b.Daemon = s.start(name, func(context.Context) error { return accepts(address) }, program, filepath.Join(dir, "pgbouncer.ini"))
	return b
}

// URL is the address of one of the pooler's databases, with further parameters.
func (b *PgBouncer) URL(database string, parameters url.Values) string {
	return "postgres://" + User + ":" + Password + "@" + b.Address + "/" + database + "?" + parameters.Encode()
}

// Open opens a schema as a service does when it starts.
func (s *Servers) Open(address, schema string) (*pg.DB, error) {
	db, err := pg.Open(s.Context(), pg.Config{URL: secure.Secret(address), Schema: schema})
	if err == nil {
		s.Cleanup(db.Close)
	}
	return db, err
}

// Refused wants an error of Open for the schema trial that holds the texts and no password.
func (s *Servers) Refused(address string, texts ...string) {
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
