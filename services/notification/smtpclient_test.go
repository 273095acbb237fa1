package notification

import (
	"bufio"
	"errors"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	gomail "github.com/wneessen/go-mail"

	"github.com/doorward/doorward/services/notification/mailtest"
	"github.com/doorward/doorward/services/notification/store"

	"github.com/doorward/doorward/pkg/outbound"
)

const user, password = "doorward", "geheim-123"

func known(c *Config) { c.MailServer.User, c.MailServer.Password = user, password }

func TestTheMailServerMayAskForAPassword(t *testing.T) {
	t.Parallel()
	for name, behaviour := range map[string]mailtest.Behaviour{
		"over STARTTLS":            {User: user, Password: password, TLS: trusted},
		"over TLS":                 {User: user, Password: password, TLS: trusted, Implicit: true},
		"in clear on this machine": {User: user, Password: password},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOffice(t, behaviour)
			s := o.service(known, func(c *Config) { c.MailServer.Encryption = security(behaviour) })
			o.run(s)
			o.order(s, 2)
			o.await("sent", all(store.Sent))
			if m := o.mail.Await(t, 2)[0]; m.Secured != (behaviour.TLS != nil) {
				t.Errorf("the mail came over TLS: %v", m.Secured)
			}
		})
	}
}

func TestSTARTTLSIsUsedWhereItIsOffered(t *testing.T) {
	t.Parallel()
	o := newOffice(t, mailtest.Behaviour{TLS: trusted})
	s := o.service()
	o.run(s)
	o.order(s, 1)
	if m := o.mail.Await(t, 1)[0]; !m.Secured {
		t.Error("the mail came in clear")
	}
}

func TestAMailServerThatRefusesTheLoginIsNoFailureOfAMail(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name      string
		address   string // of the server
		behaviour mailtest.Behaviour
		change    func(*Config)
		reason    string
	}{
		{"a wrong password", "", mailtest.Behaviour{User: user, Password: "another", TLS: trusted}, known, "it answered 535"},
		{"no password", "", mailtest.Behaviour{User: user, Password: password, TLS: trusted}, func(*Config) {},
			"the mail server answered 502 5.7.0"},
		{"a server that does not ask", "", mailtest.Behaviour{TLS: trusted}, known, "no way to log in"},
		{"a password that would be shown to the network", "127.0.0.2:0", mailtest.Behaviour{User: user, Password: password},
			known, "unencrypted connection"},
		{"a certificate of another host", "127.0.0.2:0", mailtest.Behaviour{TLS: trusted}, func(*Config) {}, "certificate"},
		{"a server that speaks no TLS", "", mailtest.Behaviour{}, func(c *Config) { c.MailServer.Encryption = ImplicitTLS },
			"tls: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := newOffice(t, mailtest.Behaviour{})
			o.mail = mailtest.Start(t, c.address, c.behaviour)
			s := o.service(c.change)
			o.run(s)
			o.order(s, 1)
			r := o.await("tried", tried)[0]
			if r.Failures != 0 || !strings.Contains(r.LastError, c.reason) {
				t.Errorf("the delivery is %+v", r)
			}
			if strings.Contains(r.LastError, password) || strings.Contains(r.LastError, user) {
				t.Errorf("the note of the failure repeats the password: %s", r.LastError)
			}
			tick := time.NewTicker(time.Millisecond)
			defer tick.Stop()
			for deadline := time.Now().Add(10 * time.Second); o.mail.Open() > 0; <-tick.C {
				if time.Now().After(deadline) {
					t.Fatal("the connection is left open")
				}
			}
		})
	}
}

// security is how a server of that behaviour is to be spoken to.
func security(b mailtest.Behaviour) Encryption {
	if b.Implicit {
		return ImplicitTLS
	}
	return OpportunisticTLS
}

// A tenant's server must not fill the memory with an answer that never ends.
func TestAnEndlessAnswerOfAMailServerIsNotRead(t *testing.T) {
	m := gomail.NewMsg()
	m.SetBodyString(gomail.TypeTextPlain, "hello")
	if err := errors.Join(m.From("shop@example.test"), m.To("jo@example.test")); err != nil {
		t.Fatal(err)
	}
	for at, want := range map[string]error{"": errServerOutputTooLong, "EHLO": errServerOutputTooLong,
		"MAIL": errUnavailable, "DATA": errConnectionBroken} {
		t.Run("to "+at, func(t *testing.T) {
			said := make(chan int, 1)
			c, err := newSMTPClient(babble(t, at, said), &net.Dialer{}, outbound.Guard{}, 30*time.Second, "localhost")
			if err != nil {
				t.Fatal(err)
			}
			if err := c.Send(t.Context(), m); !errors.Is(err, want) {
				t.Errorf("the mail fails with %v, want %v", err, want)
			}
			if n := <-said; n > 64<<20 {
				t.Errorf("the server could say %d MiB", n>>20)
			}
		})
	}
}

// babble runs a mail server that answers one command, or with an empty one the
// connection itself, without an end, and tells how much of it was taken.
func babble(t *testing.T, at string, said chan<- int) MailServer {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		line := "" // the connection itself
		for in := bufio.NewReader(conn); err == nil && line != at; {
			answer := "250 yes\r\n"
			switch line {
			case "":
				answer = "220 babble ESMTP\r\n"
			case "DATA":
				answer = "354 go on\r\n"
			}
			if _, err = io.WriteString(conn, answer); err == nil {
				line, err = in.ReadString('\n')
			}
			line, _, _ = strings.Cut(strings.TrimSpace(line), " ")
		}
		n, more := 0, []byte(strings.Repeat("2", 64<<10))
		for range 4096 { // 256 MiB
			written, err := conn.Write(more)
			if n += written; err != nil {
				break
			}
		}
		said <- n
	}()
	host, port, _ := net.SplitHostPort(listener.Addr().String())
	number, _ := strconv.Atoi(port)
	return MailServer{Host: host, Port: number}
}
