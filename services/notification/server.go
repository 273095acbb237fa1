package notification

import (
	"errors"
	"net/url"
	"strconv"

	"github.com/doorward/doorward/pkg/secure"
)

// Server is a mail server, and how to connect to it.
type Server struct {
	Host     string
	Port     int
	Security Security
	User     string // empty: it asks for no password
	Password secure.Secret
}

// Security is how a connection to a mail server is encrypted.
type Security string

// The ways to encrypt a connection. Whichever is used, the certificate must be
// valid for the host.
const (
	WhereOffered Security = ""    // STARTTLS where the server offers it
	StartTLS     Security = "TLS" // STARTTLS, or nothing is sent
	Implicit     Security = "SSL" // TLS from the first byte
)

// errServer does not repeat the address: it holds a password.
var errServer = errors.New("not of the form smtp://[user:password@]host:port or smtps://[user:password@]host:port " +
	"(percent-encode reserved characters of the password)")

// ParseServer reads smtp://[user:password@]host:port, or smtps://.
func ParseServer(address secure.Secret) (Server, error) {
	parsed, err := url.Parse(address.Reveal())
	if err != nil || parsed.Hostname() == "" || (parsed.Path != "" && parsed.Path != "/") || parsed.RawQuery != "" || parsed.Fragment != "" {
		return Server{}, errServer
	}
	security, ok := map[string]Security{"smtp": WhereOffered, "smtps": Implicit}[parsed.Scheme]
	s := Server{Host: parsed.Hostname(), Security: security}
	if s.Port, err = strconv.Atoi(parsed.Port()); err != nil || s.Port < 1 || s.Port > 65535 || !ok {
		return Server{}, errServer
	}
	if parsed.User != nil {
		password, _ := parsed.User.Password()
		s.User, s.Password = parsed.User.Username(), secure.Secret(password)
		if s.User == "" || s.Password == "" {
			return Server{}, errServer
		}
	}
	return s, nil
}
