package notification

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	gomail "github.com/wneessen/go-mail"
	"github.com/wneessen/go-mail/smtp"
)

// goodbye is how long the server may take to answer QUIT.
const goodbye = 2 * time.Second

// courier hands mails to the mail server, one after the other over one
// connection. It belongs to one sender.
type courier struct {
	server  Server
	dialer  *net.Dialer
	timeout time.Duration
	client  *gomail.Client // hands over mails; greet.go makes the session
	session *smtp.Client   // nil: no connection

	mu   sync.Mutex
	conn *bounded // below session
}

// errAway marks a failure that has nothing to do with the mail at hand: nothing
// can be sent now.
var errAway = errors.New("not now")

// errBroken marks a failure of the server in the middle of a mail, which it may
// have taken.
var errBroken = errors.New("the connection to the mail server broke")

// longestAnswer bounds what is read of a server, in bytes, until there is a
// session and then for each mail. Certificates and all that servers say fit many
// times; one that never stops would fill the memory.
const longestAnswer = 256 << 10

// errTalkative ends a connection to a server that says more.
var errTalkative = errors.New("its answers are too long")

// bounded is a connection of which so many bytes are still read.
type bounded struct {
	net.Conn
	left int
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errTalkative
	}
	n, err := b.Conn.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}

// newCourier makes a courier to a server that is reached through the dialer.
// No step of its work takes longer than the timeout.
func newCourier(server Server, dialer *net.Dialer, timeout time.Duration) (*courier, error) {
	client, err := gomail.NewClient(server.Host, gomail.WithPort(server.Port), gomail.WithTimeout(timeout), gomail.WithoutNoop(), gomail.WithoutRset())
	if err != nil {
		return nil, fmt.Errorf("prepare to send mail: %w", err)
	}
	return &courier{server: server, dialer: dialer, timeout: timeout, client: client}, nil
}

// carry hands over one mail until ctx ends. An error that is errAway came before
// the server was told of the mail, a refusal is final, and any other leaves open
// whether the mail will arrive.
func (c *courier) carry(ctx context.Context, m *gomail.Msg) error {
	stop := context.AfterFunc(ctx, c.cut)
	defer stop()
	if c.session != nil {
		c.conn.left = longestAnswer
		if c.session.Noop() != nil {
			c.drop() // the server closed the connection since the last mail
		}
	}
	if c.session == nil {
		if err := c.greet(ctx); err != nil {
			return fmt.Errorf("%w: %w", errAway, err)
		}
		c.conn.left = longestAnswer
	}
	// Only an address needs SMTPUTF8. Asked for without need, it keeps the mail
	// from passing on to older servers.
	c.session.SkipSMTPUTF8(isASCII(m.GetToString()) && isASCII(m.GetFromString()))
	err := c.client.SendWithSMTPClient(c.session, m)
	if err == nil {
		return nil
	}
	c.drop()
	if m.IsDelivered() {
		return nil // what failed came after the server took the mail
	}
	return judge(err)
}

// cut ends the connection in the middle of whatever it carries.
func (c *courier) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.conn != nil {
		_ = c.conn.Close()
	}
}

// drop forgets the connection.
func (c *courier) drop() {
	c.cut()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.conn, c.session = nil, nil
}

// hangUp closes the connection politely, if there is one.
func (c *courier) hangUp() {
	if c.session == nil {
		return
	}
	if c.session.UpdateDeadline(goodbye) == nil {
		_ = c.client.CloseWithSMTPClient(c.session)
	}
	c.drop()
}

// judge turns a failure of the library into one of ours. Only the codes of the
// server's answer are kept: its text may repeat the mail, and with it the token.
func judge(err error) error {
	var failure *gomail.SendError
	if !errors.As(err, &failure) {
		return errBroken
	}
	code, status := failure.ErrorCode(), failure.EnhancedStatusCode()
	answer := fmt.Errorf("%s: %w", failure.Reason, errBroken)
	if code != 0 {
		answer = fmt.Errorf("%s: the mail server answered %s", failure.Reason, strings.TrimSpace(fmt.Sprint(code, " ", status)))
	}
	switch failure.Reason {
	case gomail.ErrConnCheck, gomail.ErrSMTPMailFrom:
		// The envelope's sender is who uses the server, so that its refusal is not
		// about this mail.
		return fmt.Errorf("%w: %w", errAway, answer)
	case gomail.ErrSMTPRcptTo, gomail.ErrSMTPData, gomail.ErrSMTPDataClose:
		// 5.7 speaks of rules and rights: those of this deployment, as a rule, which
		// its operator can mend.
		if code >= 500 && !strings.HasPrefix(status, "5.7.") {
			return refusal{answer}
		}
	}
	return answer
}

func isASCII(texts []string) bool {
	for _, text := range texts {
		for i := range len(text) {
			if text[i] > 127 {
				return false
			}
		}
	}
	return true
}
