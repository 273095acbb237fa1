package notification

import (
	"errors"
	"net/url"
	"strconv"

	"github.com/doorward/doorward/pkg/secure"
)

// Server is the mail server that takes all mail.
type Server struct {
	Host     string
	Port     int
	TLS      bool // from the first byte; otherwise STARTTLS is used where it is offered
	User     string
	Password secure.Secret
}

// errServer does not repeat the address: it holds a password.
var errServer = errors.New("not of the form smtp://[user:password@]host:port or smtps://[user:password@]host:port (percent-encode reserved characters of the password)")

// ParseServer reads smtp://[user:password@]host:port, or smtps://.
func ParseServer(address secure.Secret) (Server, error) {
	parsed, err := url.Parse(address.Reveal())
	if err != nil || parsed.Hostname() == "" || (parsed.Path != "" && parsed.Path != "/") || parsed.RawQuery != "" || parsed.Fragment != "" {
		return Server{}, errServer
	}
	s := Server{Host: parsed.Hostname(), TLS: parsed.Scheme == "smtps"}
	if s.Port, err = strconv.Atoi(parsed.Port()); err != nil || s.Port < 1 || s.Port > 65535 || (!s.TLS && parsed.Scheme != "smtp") {
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
