// Package mailtest is a mail server for tests. It speaks SMTP on a loopback address, keeps the mails
// that it accepts, and fails as a test tells it to.
package mailtest

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"

	"github.com/doorward/doorward/pkg/worktest"
)

// Behaviour is how a server differs from one that accepts everything. A nil function accepts.
type Behaviour struct {
	User, Password string       // asked for, where they are set
	TLS            *tls.Config  // offers STARTTLS, where it is set
	Implicit       bool         // TLS from the first byte
	Mail           func() error // answers MAIL FROM
	Rcpt           func(to string) error
	// Data answers the content of a mail. ErrDrop breaks the connection instead.
	Data func(Message) error
}

// ErrDrop is returned by Data to break the connection without an answer.
var ErrDrop = errors.New("drop")

// Answer is a refusal of the server, such as 550 5.1.1. Its text repeats what it
// refuses, as some servers do.
func Answer(code int, status [3]int, text string) error {
	return &smtp.SMTPError{Code: code, EnhancedCode: smtp.EnhancedCode(status), Message: text}
}

// Server is a running mail server.
type Server struct {
	Address string

	smtp        *smtp.Server
	listener    net.Listener
	mu          sync.Mutex
	behaviour   Behaviour
	taken       []Message
	connections int // ever made
	open        int // of them
}

// Start runs a server on the address; an empty one means any free port. It ends
// with the test, or by Stop.
func Start(t testing.TB, address string, behaviour Behaviour) *Server {
	t.Helper()
	if address == "" {
		address = "127.0.0.1:0"
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{Address: listener.Addr().String(), behaviour: behaviour}
	s.smtp = smtp.NewServer(smtp.BackendFunc(func(c *smtp.Conn) (smtp.Session, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.connections++
		s.open++
		return &session{server: s, conn: c}, nil
	}))
	s.smtp.Domain, s.smtp.EnableSMTPUTF8, s.smtp.AllowInsecureAuth = "mail.test", true, true
	s.smtp.ErrorLog = log.New(io.Discard, "", 0) // of clients that break off, as tests make them
	if behaviour.Implicit {
		listener = tls.NewListener(listener, behaviour.TLS)
	} else {
		s.smtp.TLSConfig = behaviour.TLS
	}
	s.listener = listener
	var serving sync.WaitGroup
	serving.Go(func() { _ = s.smtp.Serve(listener) })
	t.Cleanup(func() {
		s.Stop()
		serving.Wait()
	})
	return s
}

// Stop ends the server and its connections. It may be called again.
func (s *Server) Stop() {
	_ = s.listener.Close() // the server may not have begun to serve it
	_ = s.smtp.Close()
}

// Behave changes the answers of the server.
func (s *Server) Behave(change func(*Behaviour)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.behaviour)
}

// Connections is the number of clients that have connected and sent EHLO.
func (s *Server) Connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.connections
}

// Open is the number of clients that are connected now.
func (s *Server) Open() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open
}

// Taken returns the mails that the server has got so far, also those whose client got no answer.
func (s *Server) Taken() []Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.taken)
}

// Await waits until the server has got n mails, and returns them.
func (s *Server) Await(t testing.TB, n int) []Message {
	t.Helper()
	worktest.Await(t, fmt.Sprintf("%d messages at the mail server", n), func() bool { return len(s.Taken()) >= n })
	return s.Taken()
}

func (s *Server) now() Behaviour {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.behaviour
}

func (s *Server) take(m Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken = append(s.taken, m)
}

type session struct {
	server   *Server
	conn     *smtp.Conn
	known    bool
	unicode  bool // the client has asked for SMTPUTF8 (RFC 6531)
	from, to string
}

func (s *session) AuthMechanisms() []string {
	if s.server.now().User == "" {
		return nil
	}
	return []string{sasl.Plain}
}

func (s *session) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, user, password string) error {
		want := s.server.now()
		if user != want.User || password != want.Password {
			return Answer(535, [3]int{5, 7, 8}, "wrong: "+user+" "+password)
		}
		s.known = true
		return nil
	}), nil
}

func (s *session) Mail(from string, options *smtp.MailOptions) error {
	now := s.server.now()
	if now.User != "" && !s.known {
		return smtp.ErrAuthRequired
	}
	s.from, s.unicode = from, options.UTF8
	if now.Mail != nil {
		return now.Mail()
	}
	return nil
}

func (s *session) Rcpt(to string, _ *smtp.RcptOptions) error {
	s.to = to
	if rcpt := s.server.now().Rcpt; rcpt != nil {
		return rcpt(to)
	}
	return nil
}

func (s *session) Data(r io.Reader) error {
	raw, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	_, secured := s.conn.TLSConnectionState()
	m, err := Parse(raw)
	if err != nil {
		return Answer(554, [3]int{5, 6, 0}, err.Error())
	}
	if !s.unicode && !isASCII(s.from+s.to+m.Raw) {
		return Answer(554, [3]int{5, 6, 7}, "SMTPUTF8 was not asked for")
	}
	m.EnvelopeFrom, m.EnvelopeTo, m.Secured, m.Helo = s.from, s.to, secured, s.conn.Hostname()
	answer := s.server.now().Data
	s.server.take(m)
	if answer != nil {
		err = answer(m)
	}
	if errors.Is(err, ErrDrop) {
		_ = s.conn.Conn().Close()
	}
	return err
}

// isASCII reports whether a text has ASCII characters alone.
func isASCII(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r > unicode.MaxASCII })
}

func (s *session) Reset() {}

func (s *session) Logout() error {
	s.server.mu.Lock()
	defer s.server.mu.Unlock()
	s.server.open--
	return nil
}
