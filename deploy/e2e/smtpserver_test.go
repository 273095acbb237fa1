package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"

	"github.com/doorward/doorward/deploy/e2e"
)

// relay is the mail server of a tenant: it asks for a password and counts what
// it takes.
type relay struct {
	port   int
	server *smtp.Server
	mu     sync.Mutex
	taken  []string
}

const relayUser, relayPassword = "relay@shop.example.test", "geheim-123"

func startRelay(t *testing.T) *relay {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{port: listener.Addr().(*net.TCPAddr).Port}
	r.server = smtp.NewServer(smtp.BackendFunc(func(*smtp.Conn) (smtp.Session, error) { return &relaySession{r: r}, nil }))
	r.server.Domain, r.server.AllowInsecureAuth = "shop.example.test", true
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = r.server.Serve(listener)
	}()
	t.Cleanup(func() {
		_ = r.server.Close()
		<-done
	})
	return r
}

// await waits until the relay has taken a mail of that envelope to an address.
func (r *relay) await(t *testing.T, address string) string {
	t.Helper()
	var found string
	err := e2e.AwaitFor(t.Context(), e2e.MailLimit, "a mail to "+address+" at the tenant's server", func(context.Context) error {
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, mail := range r.taken {
			if strings.Contains(mail, "to "+address+"\n") {
				found = mail
				return nil
			}
		}
		return fmt.Errorf("the server has %d mails", len(r.taken))
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

type relaySession struct {
	r        *relay
	known    bool
	from, to string
}

func (s *relaySession) AuthMechanisms() []string { return []string{sasl.Plain} }

func (s *relaySession) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, user, password string) error {
		if user != relayUser || password != relayPassword {
			return smtp.ErrAuthFailed
		}
		s.known = true
		return nil
	}), nil
}

func (s *relaySession) Mail(from string, _ *smtp.MailOptions) error {
	if !s.known {
		return smtp.ErrAuthRequired
	}
	s.from = from
	return nil
}

func (s *relaySession) Rcpt(to string, _ *smtp.RcptOptions) error {
	s.to = to
	return nil
}

func (s *relaySession) Data(body io.Reader) error {
	text, err := io.ReadAll(body)
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	s.r.taken = append(s.r.taken, "from "+s.from+"\nto "+s.to+"\n"+string(text))
	return err
}

func (*relaySession) Reset()        {}
func (*relaySession) Logout() error { return nil }

func TestATenantHasAMailServerOfItsOwn(t *testing.T) {
	tenant := client.Tenant(t)
	servers := tenant.Link(t, "smtpServers")
	relay := startRelay(t)
	body := func(change e2e.Object) e2e.Object {
		body := e2e.Object{"name": "Relay", "host": "127.0.0.1", "port": relay.port, "username": relayUser, "password": relayPassword}
		for name, value := range change {
			body[name] = value
		}
		return body
	}
	for _, c := range []struct {
		change e2e.Object
		code   int
	}{
		{e2e.Object{"host": "169.254.169.254"}, 13000},
		{e2e.Object{"host": "10.0.0.1"}, 13000},
		{e2e.Object{"host": "::1"}, 13000},
		{e2e.Object{"host": "nobody.invalid"}, 13000},
		{e2e.Object{"password": "wrong"}, 13001},
		{e2e.Object{"securityProtocol": "ssl"}, 13002},
		{e2e.Object{"securityProtocol": "tls"}, 13002},
		{e2e.Object{"port": 65536}, 2010},
	} {
		client.Refused(t, 400, c.code, post("/smtpServers", body(c.change)))
	}
	if got := client.All(t, servers); len(got) != 0 {
		t.Fatalf("the tenant has the servers %v", got)
	}
	server := client.Create(t, "/smtpServers", body(nil))
	remove := func() { client.Delete(t, server.Href()) }
	t.Cleanup(func() { remove() })
	client.Refused(t, 400, 13003, post("/smtpServers", body(nil)))
	if _, shown := server["password"]; shown || server.Text("status") != "ENABLED" || server["securityProtocol"] != nil || server.Link(t, "tenant") != tenant.Href() {
		t.Errorf("the server is %v", server)
	}
	expanded := client.Get(t, tenant.Href()+"?expand=smtpServers")
	if list, ok := expanded["smtpServers"].(map[string]any); !ok || len(list["items"].([]any)) != 1 {
		t.Errorf("expanded, the tenant has %v", expanded["smtpServers"])
	}
	if got := client.Get(t, server.Href()+"?expand=tenant")["tenant"].(map[string]any); got["key"] != tenant.Text("key") {
		t.Errorf("expanded, the server's tenant is %v", got)
	}

	fixture := client.NewVerificationFixture(t)
	accounts := fixture.Application.Link(t, "accounts")
	mail := relay.await(t, client.Register(t, accounts).Text("email"))
	if !strings.HasPrefix(mail, "from "+relayUser+"\n") || !strings.Contains(mail, "<"+relayUser+">") {
		t.Errorf("the mail begins with %.300s", mail)
	}

	client.Update(t, server.Href(), e2e.Object{"status": "disabled"})
	client.AwaitMail(t, client.Register(t, accounts).Text("email"))
	client.Update(t, server.Href(), e2e.Object{"status": "enabled"})

	if err := relay.server.Close(); err != nil {
		t.Fatal(err)
	}
	var emails []string
	for range 6 {
		emails = append(emails, client.Register(t, accounts).Text("email"))
	}
	for _, email := range emails {
		client.AwaitMail(t, email)
	}
	err := e2e.AwaitFor(t.Context(), e2e.MailLimit, "the alert to the owner", func(ctx context.Context) error {
		messages, err := client.Mailbox(ctx, nil)
		if err != nil {
			return err
		}
		for _, message := range messages {
			if message.Subject == "Your mail server does not work" && strings.Contains(message.Text, "127.0.0.1") {
				return nil
			}
		}
		return errors.New("it is not there")
	})
	if err != nil {
		t.Error(err)
	}
	remove()
	remove = func() {}
	client.NotFound(t, server.Href())
}
