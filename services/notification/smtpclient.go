package notification

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"
	"unicode"

	gomail "github.com/wneessen/go-mail"
	"github.com/wneessen/go-mail/smtp"

	"github.com/doorward/doorward/pkg/outbound"
)

// quitTimeout is how long the server may take to answer QUIT.
const quitTimeout = 2 * time.Second

// smtpClient sends mails to one mail server, one after the other over one
// connection. It belongs to one worker.
type smtpClient struct {
	server  Server
	dialer  *net.Dialer
	guard   outbound.Guard // knows the authorities of certificates
	timeout time.Duration
	client  *gomail.Client // writes the mails; Dial opens the session (smtpdial.go)
	session *smtp.Client   // nil: no connection

	mu   sync.Mutex
	conn *limitedConn // below session
}

// errUnavailable marks a failure that has nothing to do with the mail or text at
// hand: nothing can be sent at present.
var errUnavailable = errors.New("unavailable at present")

// errBroken marks a failure of the server in the middle of a mail, which it may
// have accepted.
var errBroken = errors.New("the connection to the mail server broke")

// maxAnswer bounds what is read from a server, in bytes, until there is a session
// and then for each mail: one that never stops would fill the memory.
const maxAnswer = 256 << 10

// errAnswerTooLong ends a connection to a server that sends more.
var errAnswerTooLong = errors.New("its answers are too long")

// limitedConn is a connection from which so many bytes are still read.
type limitedConn struct {
	net.Conn
	left int
}

func (c *limitedConn) Read(p []byte) (int, error) {
	if c.left <= 0 {
		return 0, errAnswerTooLong
	}
	n, err := c.Conn.Read(p[:min(len(p), c.left)])
	c.left -= n
	return n, err
}

// newSMTPClient makes a client of a server that is reached through the dialer.
// The timeout bounds each step.
func newSMTPClient(server Server, dialer *net.Dialer, guard outbound.Guard, timeout time.Duration) (*smtpClient, error) {
	client, err := gomail.NewClient(server.Host, gomail.WithPort(server.Port), gomail.WithTimeout(timeout),
		gomail.WithoutNoop(), gomail.WithoutRset())
	if err != nil {
		return nil, fmt.Errorf("make an SMTP client: %w", err)
	}
	return &smtpClient{server: server, dialer: dialer, guard: guard, timeout: timeout, client: client}, nil
}

// Send sends one mail, and dials first where there is no connection. An
// errUnavailable came before the server knew of the mail, a permanentError is
// final, and any other error leaves open whether the mail will arrive.
func (c *smtpClient) Send(ctx context.Context, m *gomail.Msg) error {
	stop := context.AfterFunc(ctx, c.closeConn)
	defer stop()
	if c.session != nil {
		c.conn.left = maxAnswer
		if c.session.Noop() != nil {
			c.abort() // the server closed the connection since the last mail
		}
	}
	if c.session == nil {
		if err := c.Dial(ctx); err != nil {
			return fmt.Errorf("%w: %w", errUnavailable, err)
		}
		c.conn.left = maxAnswer
	}
	// Only an address needs SMTPUTF8. Asked for without need, it keeps the mail
	// from passing on to older servers.
	c.session.SkipSMTPUTF8(isASCII(m.GetToString()) && isASCII(m.GetFromString()))
	err := c.client.SendWithSMTPClient(c.session, m)
	if err == nil {
		return nil
	}
	c.abort()
	if m.IsDelivered() {
		return nil // what failed came after the server accepted the mail
	}
	return classify(err)
}

// closeConn closes the connection, whatever is being sent.
func (c *smtpClient) closeConn() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.conn != nil {
		_ = c.conn.Close()
	}
}

// abort closes the connection without a QUIT.
func (c *smtpClient) abort() {
	c.closeConn()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.conn, c.session = nil, nil
}

// Close ends the session with a QUIT, if there is one.
func (c *smtpClient) Close() {
	if c.session == nil {
		return
	}
	if c.session.UpdateDeadline(quitTimeout) == nil {
		_ = c.client.CloseWithSMTPClient(c.session)
	}
	c.abort()
}

// classify turns an error of the library into one of this package. Only the codes
// of the server's answer are kept: its text may repeat the mail, and with it the
// token.
func classify(err error) error {
	failure, ok := errors.AsType[*gomail.SendError](err)
	if !ok {
		return errBroken
	}
	code, status := failure.ErrorCode(), failure.EnhancedStatusCode()
	answer := fmt.Errorf("%s: %w", failure.Reason, errBroken)
	if code != 0 {
		answer = fmt.Errorf("%s: the mail server answered %s", failure.Reason, strings.TrimSpace(fmt.Sprint(code, " ", status)))
	}
	switch failure.Reason {
	case gomail.ErrConnCheck, gomail.ErrSMTPMailFrom:
		// The envelope's sender is the user of the server: its refusal is not about
		// this mail.
		return fmt.Errorf("%w: %w", errUnavailable, answer)
	case gomail.ErrSMTPRcptTo, gomail.ErrSMTPData, gomail.ErrSMTPDataClose:
		// 5.7 is about policies and permissions: those of this deployment, as a rule,
		// which its operator can change.
		if code >= 500 && !strings.HasPrefix(status, "5.7.") {
			return permanentError{answer}
		}
	}
	return answer
}

func isASCII(texts []string) bool {
	return !strings.ContainsFunc(strings.Join(texts, ""), func(r rune) bool { return r > unicode.MaxASCII })
}
