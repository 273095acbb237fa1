package notification

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"net/textproto"
	"slices"
	"strconv"
	"strings"

	"github.com/wneessen/go-mail/smtp"
)

// The steps at which a connection to a mail server fails.
var (
	errUnreachable = errors.New("connect to the mail server")
	errTLS         = errors.New("encrypt the connection to the mail server")
	errLogin       = errors.New("log in to the mail server")
)

// Dial opens an SMTP session: the connection, its encryption, and the login. Its error is
// errUnreachable, errProtocol or errLogin, which the API reports as 13000, 13002 and 13001
// (docs/interface/mail.md#smtp-servers). The Dial of go-mail does not tell which step failed,
// and does not bound what is read.
func (c *smtpClient) Dial(ctx context.Context) error {
	session, err := c.open(ctx)
	if err != nil {
		c.abort()
		return err
	}
	c.session = session
	return nil
}

// open takes the steps of Dial.
func (c *smtpClient) open(ctx context.Context) (*smtp.Client, error) {
	session, err := c.connect(ctx)
	if err != nil {
		return nil, err
	}
	if err := c.encrypt(session); err != nil {
		return nil, err
	}
	if c.server.User == "" {
		return session, nil
	}
	return session, c.login(session)
}

// connect connects to the server and reads its greeting. Nothing is sent to a server that does
// not greet as a mail server, so that no other service of a network can be attacked (SSRF).
func (c *smtpClient) connect(ctx context.Context) (*smtp.Client, error) {
	dialing, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	conn, err := c.dialer.DialContext(dialing, "tcp", net.JoinHostPort(c.server.Host, strconv.Itoa(c.server.Port)))
	if err != nil {
		return nil, stepError(errUnreachable, err)
	}
	limited := &limitedConn{conn, maxServerOutput}
	conn = limited
	if c.server.Encryption == ImplicitTLS {
		encrypted := tls.Client(limited, c.tls())
		if err := encrypted.HandshakeContext(dialing); err != nil {
			_ = conn.Close()
			return nil, stepError(errTLS, err)
		}
		conn = encrypted
	}
	c.mu.Lock()
	c.conn = limited
	c.mu.Unlock()
	if ctx.Err() != nil { // closeConn may have been called before c.conn was set
		return nil, stepError(errUnreachable, ctx.Err())
	}
	if deadline, ok := dialing.Deadline(); ok {
		_ = conn.SetDeadline(deadline)
	}
	session, err := smtp.NewClient(conn, c.server.Host)
	if err != nil {
		return nil, stepError(errUnreachable, err)
	}
	if err := session.Hello(c.helo); err != nil {
		return nil, stepError(errUnreachable, err)
	}
	return session, nil
}

// encrypt starts TLS by STARTTLS, where the server offers it. It fails where STARTTLS is
// required and not offered.
func (c *smtpClient) encrypt(session *smtp.Client) error {
	if c.server.Encryption == ImplicitTLS {
		return nil
	}
	if offered, _ := session.Extension("STARTTLS"); offered {
		return stepError(errTLS, session.StartTLS(c.tls()))
	}
	if c.server.Encryption == StartTLS {
		return stepError(errTLS, errors.New("it does not offer STARTTLS"))
	}
	return nil
}

func (c *smtpClient) tls() *tls.Config {
	return c.guard.TLS(c.server.Host)
}

// login authenticates by the first mechanism of the list that the server offers. PLAIN and
// LOGIN refuse to send the password without TLS, except to this machine.
func (c *smtpClient) login(session *smtp.Client) error {
	offered, list := session.Extension("AUTH")
	user, password := c.server.User, c.server.Password.Reveal()
	for _, mechanism := range []struct {
		name string
		auth smtp.Auth
	}{
		{"SCRAM-SHA-256", smtp.ScramSHA256Auth(user, password)},
		{"PLAIN", smtp.PlainAuth("", user, password, c.server.Host, false)},
		{"LOGIN", smtp.LoginAuth(user, password, c.server.Host, false)},
		{"CRAM-MD5", smtp.CRAMMD5Auth(user, password)},
	} {
		if !offered || !hasWord(list, mechanism.name) {
			continue
		}
		err := session.Auth(mechanism.auth)
		if errors.Is(err, smtp.ErrUnencrypted) {
			return stepError(errTLS, errors.New("the password would go over an unencrypted connection"))
		}
		return stepError(errLogin, err)
	}
	return stepError(errLogin, errors.New("it offers no way to log in that is supported"))
}

func hasWord(list, word string) bool {
	return slices.ContainsFunc(strings.Fields(list), func(offered string) bool {
		return strings.EqualFold(offered, word)
	})
}

// heloName is the name for EHLO (RFC 5321, section 4.1.1.1): the configured one, else the host of the base
// address. An IP address is written as an address literal.
func (s *Service) heloName() string {
	name := cmp.Or(s.cfg.HeloName, s.base.Hostname())
	address, err := netip.ParseAddr(name)
	switch {
	case err != nil:
		return asciiHost(name)
	case address.Is6():
		return "[IPv6:" + name + "]"
	}
	return "[" + name + "]"
}

// stepError joins the step that failed and its cause, without the text of the server's reply,
// which may repeat what was sent. It returns nil for a nil cause.
func stepError(step, cause error) error {
	var answer *textproto.Error
	switch {
	case cause == nil:
		return nil
	case errors.As(cause, &answer):
		return fmt.Errorf("%w: it answered %d", step, answer.Code)
	case errors.Is(cause, io.EOF), errors.Is(cause, io.ErrUnexpectedEOF):
		return fmt.Errorf("%w: it closed the connection", step)
	}
	return fmt.Errorf("%w: %w", step, cause)
}
