package notification

import (
	"errors"
	"net/url"
	"strconv"

	"github.com/doorward/doorward/pkg/secure"
)

// MailServer is the connection data of an SMTP server, of the deployment or of a tenant. The
// resource that a tenant manages is in smtpserver.go, the client in smtpclient.go.
type MailServer struct {
	Host       string
	Port       int
	Encryption Encryption
	User       string // empty: no login
	Password   secure.Secret
}

// Encryption is how the connection to a mail server is encrypted (TLS).
type Encryption string

// The ways to encrypt a connection. With each of them the certificate must be valid for the
// host.
const (
	OpportunisticTLS Encryption = ""    // STARTTLS where the server offers it
	StartTLS         Encryption = "TLS" // STARTTLS is required
	ImplicitTLS      Encryption = "SSL" // TLS from the first byte
)

// errMailServerAddress does not repeat the address, which holds a password.
var errMailServerAddress = errors.New("not of the form smtp://[user:password@]host:port or " +
	"smtps://[user:password@]host:port " +
	"(percent-encode reserved characters of the password)")

// ParseMailServer reads an address of the form smtp://[user:password@]host:port, for
// STARTTLS where the server offers it, or smtps:// for TLS from the first byte.
func ParseMailServer(address secure.Secret) (MailServer, error) {
	parsed, err := url.Parse(address.Reveal())
	if err != nil || parsed.Hostname() == "" || (parsed.Path != "" && parsed.Path != "/") || parsed.RawQuery != "" ||
		parsed.Fragment != "" {
		return MailServer{}, errMailServerAddress
	}
	security, ok := map[string]Encryption{"smtp": OpportunisticTLS, "smtps": ImplicitTLS}[parsed.Scheme]
	s := MailServer{Host: parsed.Hostname(), Encryption: security}
	if s.Port, err = strconv.Atoi(parsed.Port()); err != nil || s.Port < 1 || s.Port > 65535 || !ok {
		return MailServer{}, errMailServerAddress
	}
	if parsed.User != nil {
		password, _ := parsed.User.Password()
		s.User, s.Password = parsed.User.Username(), secure.Secret(password)
		if s.User == "" || s.Password == "" {
			return MailServer{}, errMailServerAddress
		}
	}
	return s, nil
}
