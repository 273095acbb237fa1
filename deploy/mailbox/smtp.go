package mailbox

import (
	"context"
	"io"
	"log/slog"
	"net"
	"strings"
	"time"

	"github.com/emersion/go-smtp"
)

// The limits of SMTP. They are wide, because a mail sink should accept every mail, and
// bounded, because the mailbox runs inside another process.
const (
	maxMessageBytes = 25 << 20
	maxRecipients   = 100
	maxLineBytes    = 1 << 20
	smtpTimeout     = 5 * time.Minute // RFC 5321, 4.5.3.2.7; a whole message must arrive in it
)

// ServeSMTP accepts mail on a listener, which it closes, until ctx ends; then it returns nil. Any
// sender and any recipient are accepted. The answer 250 to a message means that it is in its file; a
// client whose message is cut off by the end sends it again.
func (m *Mailbox) ServeSMTP(ctx context.Context, listener net.Listener) error {
	server := smtp.NewServer(smtp.BackendFunc(func(*smtp.Conn) (smtp.Session, error) {
		return &session{mailbox: m}, nil
	}))
	server.Domain = "mailbox.doorward"
	server.MaxMessageBytes = maxMessageBytes
	server.MaxRecipients = maxRecipients
	server.MaxLineLength = maxLineBytes
	server.ReadTimeout = smtpTimeout
	server.WriteTimeout = smtpTimeout
	server.EnableSMTPUTF8 = true
	server.ErrorLog = slog.NewLogLogger(slog.Default().Handler(), slog.LevelWarn)
	stop := context.AfterFunc(ctx, func() {
		_ = listener.Close() // The server knows the listener only when it serves it.
		_ = server.Close()
	})
	defer stop()
	if err := server.Serve(listener); err != nil && ctx.Err() == nil {
		return err
	}
	return nil
}

// session is the SMTP session of one client.
type session struct {
	mailbox *Mailbox
	from    string
	to      []string
}

// errNotKept is temporary (4xx): the client retries.
var errNotKept = &smtp.SMTPError{Code: 451, EnhancedCode: smtp.EnhancedCode{4, 3, 0},
	Message: "The message could not be kept, try again later"}

func (s *session) Mail(from string, _ *smtp.MailOptions) error {
	s.from = strings.ToValidUTF8(from, "\uFFFD")
	return nil
}

func (s *session) Rcpt(to string, _ *smtp.RcptOptions) error {
	s.to = append(s.to, strings.ToValidUTF8(to, "\uFFFD"))
	return nil
}

func (s *session) Data(r io.Reader) error {
	raw, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	content := readContent(raw)
	_, err = s.mailbox.add(Message{
		Kind: KindEmail, From: s.from, To: s.to, Subject: content.subject, Text: content.text, HTML: content.html,
		Raw: strings.ToValidUTF8(string(raw), "\uFFFD"),
	})
	if err != nil {
		slog.Error("mailbox: mail not accepted", "error", err)
		return errNotKept
	}
	return nil
}

func (s *session) Reset() { s.from, s.to = "", nil }

func (s *session) Logout() error { return nil }
