package notification

import (
	"context"
	"errors"
	"net/netip"
	"regexp"
	"time"

	"golang.org/x/net/idna"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/list"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/notification/store"
)

// Limits of an SMTP server, in characters (docs/interface/limits.md#field-limits).
const (
	maxName        = 255
	maxDescription = 1000
	maxCredential  = 255
	maxPort        = 65535
)

// testTimeout bounds the test of a server's connection data
// (docs/interface/mail.md#smtp-servers).
const testTimeout = 10 * time.Second

// Sealed are the columns of values that are sealed under the master key.
var Sealed = []secure.SealedColumn[id.ID]{
	{Table: "smtp_servers", Key: "id", Column: "password_sealed", Purpose: smtpPasswordPurpose},
}

func smtpPasswordPurpose(server id.ID) string { return "notification.smtp/" + server.String() }

// SMTPServerBody is the body that creates or updates an SMTP server.
type SMTPServerBody struct {
	Name             field.Text `json:"name"`
	Description      field.Text `json:"description"`
	Username         field.Text `json:"username"`
	Password         field.Text `json:"password"`
	Host             field.Text `json:"host"`
	Port             field.Int  `json:"port"`
	SecurityProtocol field.Text `json:"securityProtocol"`
	Status           field.Text `json:"status"`
}

// SMTPServer returns a server, or apierr.NotFound.
func (s *Service) SMTPServer(ctx context.Context, at id.Ref) (store.SMTPServer, error) {
	return s.store.SMTPServer(ctx, at.Tenant, at.ID)
}

// SMTPServers returns a page of the servers of a tenant, of which there is at most
// one. A caller's own tenant is the only one that exists to it: any other is
// apierr.NotFound.
func (s *Service) SMTPServers(ctx context.Context, tenant id.Ref,
	query list.Query) (list.Page[store.SMTPServer], error) {
	return list.PageOf(ctx, s.peers.Directory.Tenant, s.store.ListSMTPServers, tenant, query)
}

// errServerExists is the error for a second server of a tenant.
var errServerExists = apierr.SMTPServerExists.Because("the tenant has an SMTP server; delete it before you add another")

// CreateSMTPServer adds the SMTP server of a tenant, after a connection and a login have
// succeeded. It returns the errors of testConnection, and apierr.SMTPServerExists for a
// tenant that has a server.
func (s *Service) CreateSMTPServer(ctx context.Context, tenant id.ID, in SMTPServerBody) (store.SMTPServer, error) {
	now := s.now()
	v := store.SMTPServer{TenantID: tenant, ID: id.New(now), Status: store.Enabled, CreatedAt: now, ModifiedAt: now}
	if err := s.apply(in, &v, true); err != nil {
		return v, err
	}
	has, err := s.store.HasSMTPServer(ctx, tenant)
	if err != nil {
		return v, err
	}
	if has {
		return v, errServerExists
	}
	to, err := s.connectionOf(v)
	if err != nil {
		return v, err
	}
	if err := s.testConnection(ctx, to); err != nil {
		return v, err
	}
	err = s.store.Tx(ctx, func(tx *store.Tx) error { return tx.InsertSMTPServer(ctx, v) })
	if errors.Is(err, apierr.Exists) {
		err = errServerExists // another request has added it meanwhile
	}
	return v, err
}

// UpdateSMTPServer changes what the body names. If the connection data changes, the connection
// is tested first, with nothing locked. If another request has changed the connection data
// meanwhile, it is tested again. UpdateSMTPServer returns the errors of testConnection.
func (s *Service) UpdateSMTPServer(ctx context.Context, at id.Ref, in SMTPServerBody) (store.SMTPServer, error) {
	for {
		v, err := s.store.SMTPServer(ctx, at.Tenant, at.ID)
		if err != nil {
			return v, err
		}
		tested, err := s.testChange(ctx, v, in)
		if err != nil {
			return v, err
		}
		v, done, err := s.writeTested(ctx, at, in, tested)
		if done || err != nil {
			return v, err
		}
	}
}

// testChange returns the connection data that a server has after a change, and tests the
// connection if the change affects that data.
func (s *Service) testChange(ctx context.Context, v store.SMTPServer, in SMTPServerBody) (MailServer, error) {
	before, err := s.connectionOf(v)
	if err != nil {
		return before, err
	}
	if err := s.apply(in, &v, false); err != nil {
		return before, err
	}
	after, err := s.connectionOf(v)
	if err != nil || after == before {
		return after, err
	}
	return after, s.testConnection(ctx, after)
}

// writeTested writes a change whose connection data was tested. It writes nothing and returns
// done as false if the change now results in other data than was tested (optimistic locking).
func (s *Service) writeTested(ctx context.Context, at id.Ref, in SMTPServerBody, tested MailServer) (v store.SMTPServer,
	done bool, err error) {
	err = s.store.Tx(ctx, func(tx *store.Tx) error {
		if v, err = tx.LockSMTPServer(ctx, at.Tenant, at.ID); err != nil {
			return err
		}
		changed := v
		if err := s.apply(in, &changed, false); err != nil {
			return err
		}
		to, err := s.connectionOf(changed)
		if err != nil || to != tested {
			return err
		}
		if before, err := s.connectionOf(v); err != nil || before != to || v.Status != changed.Status {
			changed.Circuit = store.Circuit{} // close the circuit breaker: the new data may work
		}
		v, done = changed, true
		v.ModifiedAt = s.now()
		return tx.UpdateSMTPServer(ctx, v)
	})
	return v, done, err
}

// DeleteSMTPServer removes a server. Mails then go through the deployment's server.
func (s *Service) DeleteSMTPServer(ctx context.Context, at id.Ref) error {
	return s.store.Tx(ctx, func(tx *store.Tx) error { return tx.DeleteSMTPServer(ctx, at.Tenant, at.ID) })
}

// apply checks the members of a body and writes them into a server.
func (s *Service) apply(in SMTPServerBody, v *store.SMTPServer, isNew bool) (err error) {
	var errs field.Errors
	errs.Optional(&v.Name, in.Name, "name", maxName)
	errs.Optional(&v.Description, in.Description, "description", maxDescription)
	errs.Required(&v.Username, in.Username, "username", maxCredential, isNew)
	if in.Password.Present || isNew {
		password, err := field.Verbatim(in.Password, "password", maxCredential)
		errs.Add(err)
		v.PasswordSealed = s.ring.Seal(secure.Secret(password), smtpPasswordPurpose(v.ID))
	}
	errs.Set(&v.Host, in.Host, isNew, readHost)
	if !in.Port.Present && isNew {
		errs.Add(apierr.Required.Because("port is required"))
	}
	errs.Int(&v.Port, in.Port, "port", 1, maxPort)
	if in.SecurityProtocol.Present {
		v.SecurityProtocol, err = readSecurity(in.SecurityProtocol)
		errs.Add(err)
	}
	errs.Enum(&v.Status, in.Status.NullIsAbsent(isNew), "status", store.Enabled, store.Disabled)
	return errs.First()
}

func readSecurity(in field.Text) (*string, error) {
	if in.Null {
		return nil, nil
	}
	security, err := field.Enum(in, "securityProtocol", "", string(StartTLS), string(ImplicitTLS))
	return &security, err
}

// hostName matches a host name in ASCII. It allows the underscore, which the standards do not
// and some networks use.
var hostName = regexp.MustCompile(
	`^[A-Za-z0-9]([A-Za-z0-9_-]*[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9_-]*[A-Za-z0-9])?)*\.?$`)

// readHost validates the host of a server: a host name or an IP address.
func readHost(in field.Text) (string, error) {
	host, err := field.Required(in, "host", maxName)
	if err != nil {
		return "", err
	}
	if address, err := netip.ParseAddr(host); err == nil && address.Zone() == "" {
		return host, nil
	}
	if !hostName.MatchString(asciiHost(host)) {
		return "", apierr.Format.Because("host is %q, which is neither the name nor the address of a host, such as "+
			"smtp.example.com", host)
	}
	return host, nil
}

// asciiHost returns a host name in ASCII (punycode, RFC 5890). A name that has no such form
// stays as it is.
func asciiHost(host string) string {
	if name, err := idna.Lookup.ToASCII(host); err == nil {
		return name
	}
	return host
}

// connectionOf returns the connection data of a tenant's server.
func (s *Service) connectionOf(v store.SMTPServer) (MailServer, error) {
	password, err := s.ring.Open(v.PasswordSealed, smtpPasswordPurpose(v.ID))
	if err != nil {
		return MailServer{}, err
	}
	to := MailServer{Host: asciiHost(v.Host), Port: v.Port, User: v.Username, Password: password}
	if v.SecurityProtocol != nil {
		to.Encryption = Encryption(*v.SecurityProtocol)
	}
	return to, nil
}

// testConnection connects to a server and logs in, within testTimeout. It returns
// apierr.SMTPUnreachable, SMTPProtocol or SMTPCredentials, with reasons that reveal nothing
// about the network of this service (SSRF).
func (s *Service) testConnection(ctx context.Context, server MailServer) error {
	ctx, cancel := context.WithTimeout(ctx, testTimeout)
	defer cancel()
	c, err := newSMTPClient(server, s.cfg.Outbound.Dialer(), s.cfg.Outbound, testTimeout, s.heloName())
	if err != nil {
		return apierr.SMTPUnreachable.Because("host and port name no server")
	}
	stop := context.AfterFunc(ctx, c.closeConn)
	defer stop()
	err = c.Dial(ctx)
	defer c.Close()
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errLogin):
		return apierr.SMTPCredentials.Because("%s:%d did not accept the username and the password, "+
			"or offers no login by PLAIN, LOGIN, CRAM-MD5 or SCRAM-SHA-256", server.Host, server.Port)
	case errors.Is(err, errTLS):
		return apierr.SMTPProtocol.Because(
			"no encrypted connection to %s:%d could be made: securityProtocol is to be tls where the server offers "+
				"STARTTLS, ssl where it speaks TLS from the first byte, and its certificate must be valid for the "+
				"host; without encryption no password is sent", server.Host, server.Port)
	}
	return apierr.SMTPUnreachable.Because(
		"no mail server answered at %s:%d within %s; its address must be a public one",
		server.Host, server.Port, testTimeout)
}
