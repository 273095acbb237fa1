package mailbox

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"time"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"
)

// The limits of SMTP. They are wide, because a mail sink should accept every mail, and
// bounded, because the mailbox runs inside another process.
const (
	maxMessageBytes = 25 << 20
	maxRecipients   = 100
	maxAddressBytes = 1_000
	maxLineBytes    = 1 << 20
	readTimeout     = 5 * time.Minute // RFC 5321, 4.5.3.2.7; a whole message must arrive in it
	writeTimeout    = time.Minute
)

// ServeSMTP accepts mail on a listener, which it closes, until Close; then it
// returns nil. Any sender, any recipient and any password are accepted. The
// answer 250 to a message means that it is on disk.
func (m *Mailbox) ServeSMTP(inner net.Listener) error {
	listener := m.connections.track(inner)
	if listener == nil {
		return errors.Join(ErrClosed, inner.Close())
	}
	defer m.connections.serving.Done()
	if err := m.server.Serve(listener); err != nil && !m.closed.Load() {
		return err
	}
	return nil
}

func (m *Mailbox) smtpServer() *smtp.Server {
	server := smtp.NewServer(smtp.BackendFunc(func(c *smtp.Conn) (smtp.Session, error) {
		return &session{mailbox: m, connection: c.Conn().(*connection)}, nil
	}))
	server.Domain = "mailbox.doorward"
	server.MaxMessageBytes = maxMessageBytes
	server.MaxRecipients = maxRecipients
	server.MaxLineLength = maxLineBytes
	server.ReadTimeout = readTimeout
	server.WriteTimeout = writeTimeout
	server.AllowInsecureAuth = true
	server.EnableSMTPUTF8 = true
	server.EnableBINARYMIME = true
	server.EnableDSN = true
	server.ErrorLog = slog.NewLogLogger(m.log.Handler(), slog.LevelWarn)
	return server
}

// session is the SMTP session of one client.
type session struct {
	mailbox    *Mailbox
	connection *connection
	from       string
	to         []string
}

var (
	errAddressTooLong = &smtp.SMTPError{Code: 501, EnhancedCode: smtp.EnhancedCode{5, 1, 3}, Message: "Address too long"}
	errNotStored      = &smtp.SMTPError{Code: 451, EnhancedCode: smtp.EnhancedCode{4, 3, 0},
		Message: "The message could not be kept, try again later"}
)

func (s *session) Mail(from string, _ *smtp.MailOptions) error {
	if len(from) > maxAddressBytes {
		return errAddressTooLong
	}
	s.from = from
	return nil
}

func (s *session) Rcpt(to string, _ *smtp.RcptOptions) error {
	if len(to) > maxAddressBytes {
		return errAddressTooLong
	}
	s.to = append(s.to, to)
	return nil
}

// Data answers when the message is on disk, or with a temporary error (4xx), so that the
// client retries.
func (s *session) Data(r io.Reader) error {
	s.connection.setReceiving(true)
	defer s.connection.setReceiving(false)
	source := &errorTracker{reader: r}
	_, err := s.mailbox.store(envelope{Kind: KindEmail, From: s.from, To: s.to}, source)
	if err == nil {
		return nil
	}
	if refusal := (*smtp.SMTPError)(nil); errors.As(err, &refusal) {
		return refusal
	}
	// A connection that the client has closed is not logged; a disk that fails is.
	if !source.failed && !errors.Is(err, ErrClosed) {
		s.mailbox.log.Error("mailbox: mail not accepted", "error", err)
	}
	return errNotStored
}

func (s *session) Reset() { s.from, s.to = "", nil }

func (s *session) Logout() error { return nil }

// errorTracker records whether reading from the client failed.
type errorTracker struct {
	reader io.Reader
	failed bool
}

func (w *errorTracker) Read(p []byte) (int, error) {
	n, err := w.reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		w.failed = true
	}
	return n, err
}

// AuthMechanisms names what clients may use to send a password.
func (s *session) AuthMechanisms() []string { return []string{sasl.Plain, sasl.Login} }

// Auth accepts every name and password, so that a client can be tested with
// the settings it will use elsewhere.
func (s *session) Auth(mechanism string) (sasl.Server, error) {
	switch mechanism {
	case sasl.Plain:
		return sasl.NewPlainServer(func(_, _, _ string) error { return nil }), nil
	case sasl.Login:
		return &loginServer{}, nil
	}
	return nil, smtp.ErrAuthUnknownMechanism
}

// loginServer asks for a name and a password and accepts both. The library
// has only the client's side of LOGIN, which is obsolete but in use.
type loginServer struct{ answers int }

// Next receives nil first when the client did not send the name along.
func (l *loginServer) Next(response []byte) (challenge []byte, done bool, err error) {
	if response == nil {
		return []byte("Username:"), false, nil
	}
	l.answers++
	if l.answers == 1 {
		return []byte("Password:"), false, nil
	}
	return nil, true, nil
}
