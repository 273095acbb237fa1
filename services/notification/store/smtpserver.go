package store

import (
	"context"
	"time"

	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/list"
	"github.com/doorward/doorward/pkg/list/listsql"
	"github.com/doorward/doorward/pkg/pg"
)

// Values of the status of an SMTP server.
const (
	Enabled  = "ENABLED"
	Disabled = "DISABLED"
)

// SMTPServer is the mail server that a tenant has of its own.
type SMTPServer struct {
	TenantID         id.ID
	ID               id.ID
	Name             *string
	Description      *string
	Username         string
	PasswordSealed   []byte
	Host             string
	Port             int
	SecurityProtocol *string // TLS, SSL, or nil: STARTTLS where it is offered
	Status           string  // Enabled or Disabled
	CreatedAt        time.Time
	ModifiedAt       time.Time
	Circuit
}

// Circuit is the state of a server's circuit breaker. The zero value is a closed circuit breaker
// without failures.
type Circuit struct {
	Failures int        // in a row
	OpenedAt *time.Time // nil: it is closed; while it is open, mails go through the deployment's server
	ProbeAt  *time.Time // when the next mail probes the server, while it is open
	Probes   int        // how many mails have probed the server
}

const smtpServerColumns = `tenant_id, id, name, description, username, password_sealed, host, port, security_protocol,
	status, failures, opened_at, probe_at, probes, created_at, modified_at`

// SMTPServers are searched and sorted by these attributes.
var SMTPServers = list.Spec{
	"name":             {Column: "name"},
	"description":      {Column: "description"},
	"username":         {Column: "username"},
	"host":             {Column: "host"},
	"port":             {Column: "port::text"},
	"securityProtocol": {Column: "security_protocol", Kind: list.Enum, Values: []string{"TLS", "SSL"}},
	"status":           {Column: "status", Kind: list.Enum, Values: []string{Enabled, Disabled}},
	"createdAt":        {Column: "created_at", Kind: list.Time},
	"modifiedAt":       {Column: "modified_at", Kind: list.Time},
}

// SMTPServer returns a server, or apierr.NotFound.
func (s *Store) SMTPServer(ctx context.Context, tenant, server id.ID) (SMTPServer, error) {
	return pg.One[SMTPServer](ctx, s.db,
		`SELECT `+smtpServerColumns+` FROM smtp_servers WHERE tenant_id = $1 AND id = $2`,
		tenant, server)
}

// ListSMTPServers returns a page of the tenant's servers, of which there is at
// most one.
func (s *Store) ListSMTPServers(ctx context.Context, tenant id.Ref, query list.Query) (list.Page[SMTPServer], error) {
	return listsql.Select[SMTPServer](ctx, s.db, SMTPServers, query, smtpServerColumns, `FROM smtp_servers
		WHERE tenant_id = $1`, "id", tenant.Tenant)
}

// HasSMTPServer reports whether the tenant has a server.
func (s *Store) HasSMTPServer(ctx context.Context, tenant id.ID) (bool, error) {
	return pg.Value[bool](ctx, s.db, `SELECT EXISTS (SELECT 1 FROM smtp_servers WHERE tenant_id = $1)`, tenant)
}

// LockSMTPServer reads and locks a server, or returns apierr.NotFound.
func (tx *Tx) LockSMTPServer(ctx context.Context, tenant, server id.ID) (SMTPServer, error) {
	return pg.One[SMTPServer](ctx, tx, `SELECT `+smtpServerColumns+` FROM smtp_servers
		WHERE tenant_id = $1 AND id = $2 FOR UPDATE`, tenant, server)
}

// InsertSMTPServer adds a server. It returns apierr.Exists where the tenant has a server.
func (tx *Tx) InsertSMTPServer(ctx context.Context, v SMTPServer) error {
	_, err := pg.Exec(ctx, tx, pg.Insert("smtp_servers", smtpServerColumns), pg.Named(v))
	return err
}

// UpdateSMTPServer writes the columns that a client can change, and the circuit breaker.
func (tx *Tx) UpdateSMTPServer(ctx context.Context, v SMTPServer) error {
	return pg.MustChange(ctx, tx, `UPDATE smtp_servers SET `+pg.Set(`name, description, username, password_sealed, host,
		port, security_protocol, status, modified_at, failures, opened_at, probe_at, probes`)+`
		WHERE tenant_id = @tenant_id AND id = @id`, pg.Named(v))
}

// DeleteSMTPServer removes a server, or returns apierr.NotFound.
func (tx *Tx) DeleteSMTPServer(ctx context.Context, tenant, server id.ID) error {
	return pg.MustChange(ctx, tx, `DELETE FROM smtp_servers WHERE tenant_id = $1 AND id = $2`, tenant, server)
}

// EnabledSMTPServer returns the server of a tenant, or apierr.NotFound where there is none that
// is enabled.
func (s *Store) EnabledSMTPServer(ctx context.Context, tenant id.ID) (SMTPServer, error) {
	return pg.One[SMTPServer](ctx, s.db, `SELECT `+smtpServerColumns+` FROM smtp_servers
		WHERE tenant_id = $1 AND status = 'ENABLED'`, tenant)
}

// OpenCircuits counts the servers whose circuit breaker is open.
func (s *Store) OpenCircuits(ctx context.Context) (int64, error) {
	return pg.Value[int64](ctx, s.db, `SELECT count(*) FROM smtp_servers
		WHERE opened_at IS NOT NULL AND status = 'ENABLED'`)
}

// CountFailure counts a failure of a server. The failure that reaches the threshold opens the
// circuit breaker: opened is true for that call alone. CountFailure changes nothing when the
// server was changed since it was read.
func (tx *Tx) CountFailure(ctx context.Context, v SMTPServer, threshold int, now,
	probe time.Time) (opened bool, err error) {
	n, err := pg.Values[bool](ctx, tx, `UPDATE smtp_servers SET failures = failures + 1,
			opened_at = CASE WHEN failures + 1 >= $4 THEN $5::timestamptz END,
			probe_at = CASE WHEN failures + 1 >= $4 THEN $6::timestamptz END, probes = 0
		WHERE tenant_id = $1 AND id = $2 AND modified_at = $3 AND opened_at IS NULL RETURNING opened_at IS NOT NULL`,
		v.TenantID, v.ID, v.ModifiedAt, threshold, now, probe)
	return len(n) > 0 && n[0], err
}

// ClaimProbe reports whether the caller's mail may probe a server whose circuit breaker is open.
// It is true for one caller, and then for none before the time next.
func (tx *Tx) ClaimProbe(ctx context.Context, v SMTPServer, now, next time.Time) (bool, error) {
	n, err := pg.Exec(ctx, tx, `UPDATE smtp_servers SET probe_at = $4, probes = probes + 1
		WHERE tenant_id = $1 AND id = $2 AND opened_at IS NOT NULL AND probe_at <= $3`, v.TenantID, v.ID, now, next)
	return n > 0, err
}

// CloseCircuit closes the circuit breaker of a server and resets its failures.
func (tx *Tx) CloseCircuit(ctx context.Context, v SMTPServer) error {
	_, err := pg.Exec(ctx, tx, `UPDATE smtp_servers SET failures = 0, opened_at = NULL, probe_at = NULL, probes = 0
		WHERE tenant_id = $1 AND id = $2`, v.TenantID, v.ID)
	return err
}
