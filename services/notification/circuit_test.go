package notification

import (
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/outbound"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/services/notification/mailtest"
	"github.com/doorward/doorward/services/notification/store"
)

// relay returns the tenant of the office a mail server of its own.
func (o *office) relay(s *Service, behaviour mailtest.Behaviour) (*mailtest.Server, store.SMTPServer) {
	o.t.Helper()
	behaviour.User, behaviour.Password = "relay@shop.example.test", password
	server := mailtest.Start(o.t, "", behaviour)
	return server, o.own(s, server, behaviour.User)
}

func (o *office) own(s *Service, server *mailtest.Server, user string) store.SMTPServer {
	o.t.Helper()
	host, port, _ := net.SplitHostPort(server.Address)
	number, _ := strconv.Atoi(port)
	v, err := s.CreateSMTPServer(o.t.Context(), o.tenant, SMTPServerBody{
		Host: field.Some(host), Port: field.Some(number), Username: field.Some(user), Password: field.Some(password),
	})
	if err != nil {
		o.t.Fatal(err)
	}
	return v
}

// health reads how the tenant's server works.
func (o *office) health() store.SMTPServer {
	o.t.Helper()
	v, err := store.New(o.db, o.now).EnabledSMTPServer(o.t.Context(), o.tenant)
	if err != nil {
		o.t.Fatal(err)
	}
	return v
}

// refuseAll is a server that lets nobody send.
func refuseAll(b *mailtest.Behaviour) {
	b.Mail = func() error { return mailtest.Answer(550, [3]int{5, 7, 60}, "not as "+password) }
}

func works(b *mailtest.Behaviour) { b.Mail, b.Rcpt, b.Data = nil, nil, nil }

// to counts the messages to an address, or to all where it is empty.
func to(messages []mailtest.Message, address string) (n int) {
	for _, m := range messages {
		if address == "" || m.To == address {
			n++
		}
	}
	return n
}

const owner = "owner@example.test"

func TestMailsGoThroughTheServerOfTheirTenant(t *testing.T) {
	t.Parallel()
	o := newOffice(t, mailtest.Behaviour{})
	s := o.service()
	server, v := o.relay(s, mailtest.Behaviour{})
	o.run(s)
	o.order(s, 2)
	m := server.Await(t, 2)[0]
	if m.EnvelopeFrom != "relay@shop.example.test" || m.From != "relay@shop.example.test" || m.FromName != "Shop" {
		t.Errorf("the mail comes from %s, %q <%s>", m.EnvelopeFrom, m.FromName, m.From)
	}
	o.await("sent", all(store.Sent))
	if n := len(o.mail.Taken()); n != 0 {
		t.Errorf("%d mails went through the deployment's server", n)
	}
	if n := server.Connections(); n > 3 { // one of them to try it
		t.Errorf("two mails made %d connections", n-1)
	}

	t.Run("a template may name its author", func(t *testing.T) {
		plain := o.answer
		o.answers(func(in directoryapi.MailOf) (directoryapi.Mail, error) {
			mail, err := plain(in)
			mail.Template.FromEmailAddress, mail.Template.FromName = text("hello@shop.example.test"), text("Shop")
			return mail, err
		})
		o.order(s, 1)
		if m := server.Await(t, 3)[2]; m.EnvelopeFrom != "hello@shop.example.test" || m.From != "hello@shop.example.test" ||
			m.FromName != "Shop" {
			t.Errorf("the mail comes from %s, %q <%s>", m.EnvelopeFrom, m.FromName, m.From)
		}
		o.answers(plain)
	})
	t.Run("those of another tenant do not", func(t *testing.T) {
		mine := o.tenant
		o.tenant = id.New(clock.Add(time.Minute))
		o.order(s, 1)
		o.mail.Await(t, 1)
		o.tenant = mine
	})
	t.Run("nor do they while it is disabled, or after it is deleted", func(t *testing.T) {
		at := id.Ref{Tenant: v.TenantID, ID: v.ID}
		if _, err := s.UpdateSMTPServer(t.Context(), at, SMTPServerBody{Status: field.Some("disabled")}); err != nil {
			t.Fatal(err)
		}
		o.order(s, 1)
		if m := o.mail.Await(t, 2)[1]; m.EnvelopeFrom != "no-reply@id.example.test" {
			t.Errorf("the mail comes from %s", m.EnvelopeFrom)
		}
		if err := s.DeleteSMTPServer(t.Context(), at); err != nil {
			t.Fatal(err)
		}
		o.order(s, 1)
		o.mail.Await(t, 3)
		if n := len(server.Taken()); n != 3 {
			t.Errorf("the tenant's server got %d mails", n)
		}
	})
}

func TestAUsernameThatIsNoAddressIsNoAuthor(t *testing.T) {
	t.Parallel()
	o := newOffice(t, mailtest.Behaviour{})
	s := o.service()
	server := mailtest.Start(t, "", mailtest.Behaviour{User: user, Password: password})
	o.own(s, server, user)
	o.run(s)
	o.order(s, 1)
	if m := server.Await(t, 1)[0]; m.EnvelopeFrom != "no-reply@id.example.test" || m.From != "no-reply@id.example.test" {
		t.Errorf("the mail comes from %s, %s", m.EnvelopeFrom, m.From)
	}
}

// What a server that fails is left for, and comes back from: with two replicas,
// and more mails at once than it takes.
func TestTheCircuitBreakerOpensAndCloses(t *testing.T) {
	t.Parallel()
	o := newOffice(t, mailtest.Behaviour{})
	s, replica := o.service(), o.service()
	server, _ := o.relay(s, mailtest.Behaviour{})
	server.Behave(refuseAll)
	o.run(s)
	o.run(replica)

	for failures := 1; failures < failureThreshold; failures++ {
		o.order(s, 1)
		o.await("tried", func(rows []row) bool { return len(rows) == failures && tried(rows) })
		if v := o.health(); v.Failures != failures || v.OpenedAt != nil {
			t.Fatalf("after %d failures the server is %+v", failures, v.Circuit)
		}
	}
	if n := len(o.mail.Taken()); n != 0 {
		t.Errorf("%d mails went through the deployment's server too soon", n)
	}
	o.order(s, 1)
	alert := o.mail.Await(t, 1)[0]
	if alert.To != owner || alert.Subject != "Your mail server does not work" ||
		!strings.Contains(alert.Text, "127.0.0.1") || strings.Contains(alert.Text, password) {
		t.Errorf("the alert to %s says %s\n%s", alert.To, alert.Subject, alert.Text)
	}
	if v := o.health(); v.OpenedAt == nil || !v.ProbeAt.Equal(o.now().Add(time.Minute)) {
		t.Errorf("the server is %+v", v.Circuit)
	}
	o.order(s, 20)
	o.turn(mailBackoff(1))
	o.await("sent", all(store.Sent))
	if got := o.mail.Taken(); len(got) != failureThreshold+20+1 || to(got, owner) != 1 {
		t.Errorf("%d mails went through the deployment's server, %d of them alerts", len(got), to(got, owner))
	}
	if n := len(server.Taken()); n != 0 {
		t.Errorf("the server that refuses got %d mails", n)
	}

	t.Run("a probe that fails goes through the deployment's server at once", func(t *testing.T) {
		o.turn(time.Minute)
		before, connections := len(o.mail.Taken()), server.Connections()
		o.order(s, 10)
		o.await("sent", all(store.Sent))
		if n := len(o.mail.Taken()); n != before+10 {
			t.Errorf("%d of 10 mails came", n-before)
		}
		if n := server.Connections() - connections; n > 1 {
			t.Errorf("%d mails tried the server", n)
		}
		if v := o.health(); v.Probes != 1 || !v.ProbeAt.Equal(o.now().Add(2*time.Minute)) {
			t.Errorf("the server is %+v", v.Circuit)
		}
	})
	t.Run("once it works, one mail brings it back", func(t *testing.T) {
		server.Behave(works)
		o.turn(2 * time.Minute)
		o.order(s, 1)
		server.Await(t, 1)
		o.await("sent", all(store.Sent))
		if v := o.health(); v.Failures != 0 || v.OpenedAt != nil || v.Probes != 0 {
			t.Errorf("the server is %+v", v.Circuit)
		}
		o.order(s, 5)
		server.Await(t, 6)
	})
	t.Run("another outage is logged again", func(t *testing.T) {
		server.Behave(refuseAll)
		o.order(s, 10)
		o.await("left", func([]row) bool { return o.health().OpenedAt != nil })
		o.turn(time.Hour)
		server.Behave(works)
		o.await("sent", func(rows []row) bool {
			for _, r := range rows {
				if r.State == store.Pending {
					o.turn(mailBackoff(1)) // for a mail that was at the server while the clock was turned
					return false
				}
			}
			return true
		})
		alerts := 0
		for _, r := range o.rows() {
			if r.Workflow == string(circuitAlert) {
				alerts++
			}
		}
		if alerts != 2 {
			t.Errorf("%d alerts were ordered for two outages", alerts)
		}
	})
}

func TestManyFailuresAtOnceAreOneOutage(t *testing.T) {
	t.Parallel()
	o := newOffice(t, mailtest.Behaviour{})
	s := o.service(func(c *Config) { c.Senders = 8 })
	server, v := o.relay(s, mailtest.Behaviour{})
	server.Stop()
	failed := make(chan struct{})
	for range 50 {
		go func() {
			s.recordFailure(t.Context(), v, errConnectionBroken)
			failed <- struct{}{}
		}()
	}
	for range 50 {
		<-failed
	}
	if v := o.health(); v.Failures != failureThreshold || v.OpenedAt == nil {
		t.Errorf("the server is %+v", v.Circuit)
	}
	o.run(s)
	o.order(s, 20)
	o.await("sent", all(store.Sent))
	if got := o.mail.Taken(); len(got) != 21 || to(got, owner) != 1 {
		t.Errorf("%d mails came, %d of them alerts", len(got), to(got, owner))
	}
}

func TestWhatIsNoFailureOfTheServer(t *testing.T) {
	t.Parallel()
	for name, behaviour := range map[string]mailtest.Behaviour{
		"an unknown recipient": {Rcpt: func(string) error { return mailtest.Answer(550, [3]int{5, 1, 1}, "no") }},
		"a full mailbox":       {Rcpt: func(string) error { return mailtest.Answer(452, [3]int{4, 2, 2}, "no") }},
		"refused content":      {Data: func(mailtest.Message) error { return mailtest.Answer(554, [3]int{5, 6, 0}, "no") }},
		"a rule":               {Data: func(mailtest.Message) error { return mailtest.Answer(550, [3]int{5, 7, 1}, "no") }},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOffice(t, mailtest.Behaviour{})
			s := o.service()
			o.relay(s, behaviour)
			o.run(s)
			o.order(s, failureThreshold+2)
			o.await("tried", func(rows []row) bool {
				for _, r := range rows {
					if r.LastError == "" || r.Leased {
						return false
					}
				}
				return true
			})
			if v := o.health(); v.Failures != 0 || v.OpenedAt != nil {
				t.Errorf("the server is %+v", v.Circuit)
			}
			if n := len(o.mail.Taken()); n != 0 {
				t.Errorf("%d mails went through the deployment's server", n)
			}
		})
	}
}

func TestAMailThatTheTenantsServerDoesNotAcceptGoesThroughTheDeployments(t *testing.T) {
	t.Parallel()
	o := newOffice(t, mailtest.Behaviour{})
	s := o.service()
	o.relay(s, mailtest.Behaviour{Rcpt: func(string) error {
		return mailtest.Answer(554, [3]int{5, 7, 1},
			"relay access denied")
	}})
	o.run(s)
	o.order(s, 1)
	for failures := 1; failures <= failureThreshold; failures++ {
		o.await("tried", func(rows []row) bool { return rows[0].Failures == failures && !rows[0].Leased })
		o.turn(mailBackoff(failures))
	}
	o.await("sent", all(store.Sent))
	if m := o.mail.Await(t, 1)[0]; m.EnvelopeFrom != "no-reply@id.example.test" {
		t.Errorf("the mail comes from %s", m.EnvelopeFrom)
	}
}

func TestFailuresOfEveryKindCount(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func(*mailtest.Server){
		"it is away": func(m *mailtest.Server) { m.Stop() },
		"another password": func(m *mailtest.Server) {
			m.Behave(
				func(b *mailtest.Behaviour) { b.Password = "changed" })
		}, "a refused sender": func(m *mailtest.Server) { m.Behave(refuseAll) },
		"it breaks off after DATA": func(m *mailtest.Server) { m.Behave(func(b *mailtest.Behaviour) { b.Data = drops }) },
	} {
		t.Run(name, func(t *testing.T) {
			o := newOffice(t, mailtest.Behaviour{})
			s := o.service()
			server, _ := o.relay(s, mailtest.Behaviour{})
			fail(server)
			o.run(s)
			o.order(s, 1)
			r := o.await("tried", tried)[0]
			if v := o.health(); v.Failures != 1 {
				t.Errorf("the server is %+v", v.Circuit)
			}
			if strings.Contains(r.LastError, password) || strings.Contains(r.LastError, token.Reveal()) ||
				!strings.HasPrefix(r.LastError, "the tenant's mail server: ") {
				t.Errorf("the note of the failure is %s", r.LastError)
			}
		})
	}
}

func drops(mailtest.Message) error { return mailtest.ErrDrop }

func TestAPrivateAddressIsNotDialedWhenMailsAreSent(t *testing.T) {
	t.Parallel()
	o := newOffice(t, mailtest.Behaviour{})
	allowed, strict := o.service(), o.service(func(c *Config) { c.Outbound = outbound.Guard{} })
	server, _ := o.relay(allowed, mailtest.Behaviour{})
	connections := server.Connections()
	o.run(strict)
	o.order(strict, 1)
	if r := o.await("tried", tried)[0]; !strings.Contains(r.LastError, outbound.ErrForbidden.Error()) {
		t.Errorf("the delivery is %+v", r)
	}
	if n := server.Connections(); n != connections {
		t.Errorf("%d connections were made", n-connections)
	}
}

func TestAServerThatStallsDelaysNoOtherMails(t *testing.T) {
	t.Parallel()
	stall, stalled := make(chan struct{}), make(chan struct{}, 100)
	o := newOffice(t, mailtest.Behaviour{})
	s := o.service()
	var tenants []id.ID
	for i := range 3 { // more than there are senders
		o.tenant = id.New(clock.Add(time.Duration(i) * time.Minute))
		tenants = append(tenants, o.tenant)
		o.relay(s, mailtest.Behaviour{Rcpt: func(string) error {
			stalled <- struct{}{}
			<-stall
			return nil
		}})
		o.order(s, 5)
	}
	o.run(s)
	t.Cleanup(func() { close(stall) })
	<-stalled
	o.tenant = id.New(clock.Add(time.Hour))
	o.order(s, 20)
	o.mail.Await(t, 20)
	if n := len(stalled); n > 0 {
		t.Errorf("%d of %d senders wait for servers that stall", n+1, 2)
	}
	done, err := pg.Value[int](t.Context(), o.db, `SELECT count(*) FROM deliveries
		WHERE tenant_id = ANY ($1) AND finished_at IS NOT NULL`, tenants)
	if err != nil || done > 0 {
		t.Errorf("%d mails of the servers that stall are done, %v", done, err)
	}
}

func TestANewPasswordClosesTheCircuitBreaker(t *testing.T) {
	t.Parallel()
	o := newOffice(t, mailtest.Behaviour{})
	s := o.service()
	server, v := o.relay(s, mailtest.Behaviour{})
	for range failureThreshold {
		s.recordFailure(t.Context(), v, errConnectionBroken)
	}
	at := id.Ref{Tenant: v.TenantID, ID: v.ID}
	o.turn(time.Second)
	if _, err := s.UpdateSMTPServer(t.Context(), at, SMTPServerBody{Name: field.Some("Relay")}); err != nil {
		t.Fatal(err)
	}
	if o.health().OpenedAt == nil {
		t.Error("a new name brought the server back")
	}
	server.Behave(func(b *mailtest.Behaviour) { b.Password = "changed" })
	if _, err := s.UpdateSMTPServer(t.Context(), at, SMTPServerBody{Password: field.Some("changed")}); err != nil {
		t.Fatal(err)
	}
	if got := o.health(); got.OpenedAt != nil || got.Failures != 0 {
		t.Errorf("the server is %+v", got.Circuit)
	}
	s.recordFailure(t.Context(), v, errConnectionBroken) // of a try with the former password
	if got := o.health(); got.Failures != 0 {
		t.Errorf("a failure of the former data counts: %+v", got.Circuit)
	}
	o.run(s)
	o.order(s, 1)
	server.Await(t, 1)
}
