package store

import (
	"context"
	"time"

	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/list"
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
}

const smtpServerColumns = `tenant_id, id, name, description, username, password_sealed, host, port, security_protocol, status, created_at, modified_at`

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

// SMTPServer gives a server, or apierr.NotFound.
func (s *Store) SMTPServer(ctx context.Context, tenant, server id.ID) (SMTPServer, error) {
	return pg.One[SMTPServer](ctx, s.db, `SELECT `+smtpServerColumns+` FROM smtp_servers WHERE tenant_id = $1 AND id = $2`, tenant, server)
}

// ListSMTPServers gives a page of the tenant's servers, of which there is at
// most one.
func (s *Store) ListSMTPServers(ctx context.Context, tenant id.ID, query list.Query) (list.Page[SMTPServer], error) {
	return list.Select[SMTPServer](ctx, s.db, SMTPServers, query, smtpServerColumns, `FROM smtp_servers WHERE tenant_id = $1`, "id", tenant)
}

// HasSMTPServer reports whether the tenant has a server.
func (s *Store) HasSMTPServer(ctx context.Context, tenant id.ID) (bool, error) {
	return pg.Value[bool](ctx, s.db, `SELECT EXISTS (SELECT FROM smtp_servers WHERE tenant_id = $1)`, tenant)
}

// LockSMTPServer reads a server that the transaction will change.
func (tx *Tx) LockSMTPServer(ctx context.Context, tenant, server id.ID) (SMTPServer, error) {
	return pg.One[SMTPServer](ctx, tx, `SELECT `+smtpServerColumns+` FROM smtp_servers WHERE tenant_id = $1 AND id = $2 FOR UPDATE`, tenant, server)
}

// InsertSMTPServer adds a server. A tenant that has one is apierr.Exists.
func (tx *Tx) InsertSMTPServer(ctx context.Context, v SMTPServer) error {
	_, err := pg.Exec(ctx, tx, `INSERT INTO smtp_servers (`+smtpServerColumns+`) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)`,
		v.TenantID, v.ID, v.Name, v.Description, v.Username, v.PasswordSealed, v.Host, v.Port, v.SecurityProtocol, v.Status, v.CreatedAt, v.ModifiedAt)
	return err
}

// UpdateSMTPServer writes what a client can change.
func (tx *Tx) UpdateSMTPServer(ctx context.Context, v SMTPServer) error {
	return pg.MustChange(ctx, tx, `UPDATE smtp_servers SET name = $3, description = $4, username = $5, password_sealed = $6, host = $7, port = $8,
		security_protocol = $9, status = $10, modified_at = $11 WHERE tenant_id = $1 AND id = $2`,
		v.TenantID, v.ID, v.Name, v.Description, v.Username, v.PasswordSealed, v.Host, v.Port, v.SecurityProtocol, v.Status, v.ModifiedAt)
}

// DeleteSMTPServer removes a server, or returns apierr.NotFound.
func (tx *Tx) DeleteSMTPServer(ctx context.Context, tenant, server id.ID) error {
	return pg.MustChange(ctx, tx, `DELETE FROM smtp_servers WHERE tenant_id = $1 AND id = $2`, tenant, server)
}
