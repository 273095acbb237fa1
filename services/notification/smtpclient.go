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

// smtpClient sends mails to one mail server by SMTP, one after the other over one connection.
// It belongs to one worker. What it does with temporary (4xx) and permanent (5xx) failures is
// in classify.
type smtpClient struct {
	server  MailServer
	dialer  *net.Dialer
	guard   outbound.Guard // has the certificate authorities that are trusted
	timeout time.Duration
	helo    string         // the name for EHLO
	client  *gomail.Client // writes the mails; Dial opens the session (smtpdial.go)
	session *smtp.Client   // nil: no connection

	mu   sync.Mutex
	conn *limitedConn // the connection of session
}

// errUnavailable marks a failure that would be the same for every mail or text message: the
// server or the provider cannot be used at present.
var errUnavailable = errors.New("unavailable at present")

// errConnectionBroken marks a failure in the middle of a mail, which the server may have
// accepted.
var errConnectionBroken = errors.New("the connection to the mail server broke")

// maxServerOutput bounds what is read from a server, in bytes, until the session is open and
// then for each mail. A server that sends without end would fill the memory.
const maxServerOutput = 256 << 10

// errServerOutputTooLong is the error for a server that sends more than maxServerOutput.
var errServerOutputTooLong = errors.New("its answers are too long")

// limitedConn is a connection from which only left bytes can be read.
type limitedConn struct {
	net.Conn
	left int
}

func (c *limitedConn) Read(p []byte) (int, error) {
	if c.left <= 0 {
		return 0, errServerOutputTooLong
	}
	n, err := c.Conn.Read(p[:min(len(p), c.left)])
	c.left -= n
	return n, err
}

// newSMTPClient makes a client of a mail server, which connects by the dialer when it sends its
// first mail and greets the server with the name helo. The timeout bounds each step of the protocol.
func newSMTPClient(server MailServer, dialer *net.Dialer, guard outbound.Guard, timeout time.Duration,
	helo string) (*smtpClient, error) {
	client, err := gomail.NewClient(server.Host, gomail.WithPort(server.Port), gomail.WithTimeout(timeout),
		gomail.WithoutNoop(), gomail.WithoutRset())
	if err != nil {
		return nil, fmt.Errorf("make an SMTP client: %w", err)
	}
	return &smtpClient{server: server, dialer: dialer, guard: guard, timeout: timeout, helo: helo, client: client}, nil
}

// Send sends one mail, and connects first where there is no connection. errUnavailable means
// that the server did not get the mail, and permanentError that it refuses the mail for good.
// Any other error leaves open whether the mail will arrive.
func (c *smtpClient) Send(ctx context.Context, m *gomail.Msg) error {
	stop := context.AfterFunc(ctx, c.closeConn)
	defer stop()
	if c.session != nil {
		c.conn.left = maxServerOutput
		if c.session.Noop() != nil {
			c.abort() // the server closed the connection since the last mail
		}
	}
	if c.session == nil {
		if err := c.Dial(ctx); err != nil {
			return fmt.Errorf("%w: %w", errUnavailable, err)
		}
		c.conn.left = maxServerOutput
	}
	// SMTPUTF8 is requested only for an address that is not ASCII: a mail that is sent with
	// it cannot be relayed to servers that lack it.
	c.session.SkipSMTPUTF8(isASCII(m.GetToString()) && isASCII(m.GetFromString()))
	err := c.client.SendWithSMTPClient(c.session, m)
	if err == nil {
		return nil
	}
	c.abort()
	if m.IsDelivered() {
		return nil // the failure came after the server had accepted the mail
	}
	return classify(err)
}

// closeConn closes the connection at once, also from another goroutine.
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

// Close ends the session, if there is one, with a QUIT.
func (c *smtpClient) Close() {
	if c.session == nil {
		return
	}
	if c.session.UpdateDeadline(quitTimeout) == nil {
		_ = c.client.CloseWithSMTPClient(c.session)
	}
	c.abort()
}

// classify turns an error of the library into permanentError, errUnavailable or a temporary
// failure, by the SMTP reply code. It keeps the codes alone: the text of the server's reply may
// repeat the mail, and with it the token.
func classify(err error) error {
	failure, ok := errors.AsType[*gomail.SendError](err)
	if !ok {
		return errConnectionBroken
	}
	code, status := failure.ErrorCode(), failure.EnhancedStatusCode()
	answer := fmt.Errorf("%s: %w", failure.Reason, errConnectionBroken)
	if code != 0 {
		answer = fmt.Errorf("%s: the mail server answered %s", failure.Reason,
			strings.TrimSpace(fmt.Sprint(code, " ", status)))
	}
	switch failure.Reason {
	case gomail.ErrConnCheck, gomail.ErrSMTPMailFrom:
		// The sender of the envelope is the same for all mails: its refusal is not about
		// this mail.
		return fmt.Errorf("%w: %w", errUnavailable, answer)
	case gomail.ErrSMTPRcptTo, gomail.ErrSMTPData, gomail.ErrSMTPDataClose:
		// 5.7.x is about policies and permissions, which the operator of this deployment
		// can usually change: a retry may succeed.
		if code >= 500 && !strings.HasPrefix(status, "5.7.") {
			return permanentError{answer}
		}
	}
	return answer
}

func isASCII(texts []string) bool {
	return !strings.ContainsFunc(strings.Join(texts, ""), func(r rune) bool { return r > unicode.MaxASCII })
}
