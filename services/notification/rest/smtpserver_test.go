package rest_test

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net"
	"net/mail"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/outbound"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/pg/pgtest"
	"github.com/doorward/doorward/pkg/rest"
	"github.com/doorward/doorward/pkg/rest/resttest"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/directory/directorytest"
	"github.com/doorward/doorward/services/notification"
	"github.com/doorward/doorward/services/notification/mailtest"
	notificationrest "github.com/doorward/doorward/services/notification/rest"
	"github.com/doorward/doorward/services/notification/store"
)

const (
	base     = href.Base("https://localhost:8443/v1")
	user     = "relay"
	password = "  geheim-123 "
)

// trusted is the certificate of the tests' mail servers.
var trusted *tls.Config

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "doorward-mail-")
	if err == nil {
		trusted, err = mailtest.Trust(dir, time.Now())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	pgtest.Main(m)
}

// site is the service as a tenant sees it.
type site struct {
	*resttest.Client
	t      *testing.T
	db     *pg.DB
	ring   *secure.Keyring
	tenant id.ID
}

func now() time.Time { return time.Date(2026, 11, 20, 20, 25, 0, 0, time.UTC) }

func open(t *testing.T, networks ...string) *site {
	t.Helper()
	dbs := pgtest.OpenAll(t, directorytest.Config, store.Config)
	directories := directorytest.New(t, dbs[0], base, now)
	s := &site{t: t, db: dbs[1], tenant: directories.NewTenant().Tenant.ID}
	var err error
	if s.ring, err = secure.ParseKeyring(secure.NewMasterKey("k1")); err != nil {
		t.Fatal(err)
	}
	reach, err := outbound.ParseGuard(networks)
	if err != nil {
		t.Fatal(err)
	}
	svc := notification.New(store.New(s.db, now), notification.Peers{Directory: directories}, s.ring, base, now,
		notification.Config{Outbound: reach, From: mail.Address{Address: "no-reply@example.test"}})
	signer := caller.NewSigner("a secret of the tests, 32 characters", now)
	app := rest.New(rest.Config{Service: "notification", Base: base, Signer: signer})
	notificationrest.Mount(app, svc, base)
	s.Client = resttest.New(t, app, signer,
		caller.Caller{Tenant: s.tenant, RequestID: "0d7f8a3e-3b0c-4b7e-9d7e-2f1f7a3f5b10"})
	return s
}

// relay starts a mail server that asks for the password.
func relay(t *testing.T) *mailtest.Server {
	return mailtest.Start(t, "", mailtest.Behaviour{User: user, Password: password})
}

// body is what creates a server, with further members in place of its own.
func body(server *mailtest.Server, change map[string]any) string {
	host, port, _ := net.SplitHostPort(server.Address)
	members := map[string]any{"host": host, "port": port, "username": user, "password": password}
	for name, value := range change {
		members[name] = value
		if value == absent {
			delete(members, name)
		}
	}
	text, _ := json.Marshal(members)
	return string(text)
}

const absent = "\x00absent"

// list is the address of the collection.
func (s *site) list() string { return base.To("tenants", s.tenant, "smtpServers") }

func TestSMTPServer(t *testing.T) {
	s, server := open(t, "127.0.0.0/8"),
		mailtest.Start(t, "127.0.0.1:0", mailtest.Behaviour{User: user, Password: password, TLS: trusted})
	_, port, _ := net.SplitHostPort(server.Address)
	golden := func(a resttest.Answer, name string) resttest.Answer {
		a.Body = []byte(strings.ReplaceAll(string(a.Body), port, "2525"))
		return a.Golden(name)
	}
	s.Get(s.list()).Want(200).Golden("smtp_server_none")
	made := golden(s.Post("/v1/smtpServers", body(server, nil)).Want(201), "smtp_server_created")
	golden(s.Get(made.Href()).Want(200), "smtp_server")
	golden(s.Post(made.Href(), `{"name":"Relay","description":"of the shop","securityProtocol":"tls","status":"disabled","tenant":{"href":"ignored"},"createdAt":"ignored"}`).Want(200), "smtp_server_updated")
	golden(s.Get(s.list()+"?orderBy=port,name&q=relay").Want(200), "smtp_server_list")
	if got := s.Post(made.Href(), `{"securityProtocol":null}`).Want(200); got.Object()["securityProtocol"] != nil ||
		got.Text("status") != "DISABLED" {
		t.Errorf("after null the server is %s", got.Body)
	}
	s.Post(made.Href(), `{}`).Want(200)
	s.Delete(made.Href()).Want(204)
	s.Delete(made.Href()).Want(204)
	s.Get(made.Href()).WantError(404, 404)
	s.Post(made.Href(), `{}`).WantError(404, 404)
	second := s.Post("/v1/smtpServers",
		body(server, map[string]any{"securityProtocol": "TLS", "status": "Disabled", "port": json.Number(port)})).Want(201)
	if second.Href() == made.Href() || second.Text("securityProtocol") != "TLS" || second.Text("status") != "DISABLED" {
		t.Errorf("the second server is %s", second.Body)
	}
}

func TestThePasswordIsSealedAndNeverShown(t *testing.T) {
	s, server := open(t, "127.0.0.0/8"), relay(t)
	made := s.Post("/v1/smtpServers", body(server, nil)).Want(201)
	for _, a := range []resttest.Answer{made, s.Get(made.Href()), s.Get(s.list()),
		s.Post(made.Href(), `{"name":"Relay"}`)} {
		if strings.Contains(string(a.Body), "geheim") || strings.Contains(string(a.Body), "assword") {
			t.Errorf("an answer shows the password: %s", a.Body)
		}
	}
	rows, err := pg.Values[string](t.Context(), s.db, `SELECT v::text || encode(v.password_sealed, 'escape')
		FROM smtp_servers v`)
	if err != nil || len(rows) != 1 || strings.Contains(rows[0], "geheim") {
		t.Errorf("the row is %v, %v", rows, err)
	}
}

func TestSMTPServerRefusals(t *testing.T) {
	s, server := open(t, "127.0.0.0/8"), relay(t)
	for _, c := range []struct {
		member string
		value  any
		code   int
	}{
		{"host", absent, 2000}, {"host", nil, 2000}, {"host", " ", 2000}, {"host", 5, 2004},
		{"host", strings.Repeat("a", 256), 2008},
		{"host", "mail test", 2006}, {"host", "mail/../test", 2006}, {"host", "user@mail.test", 2006},
		{"host", "mail.test:25", 2006}, {"host", "a..b", 2006}, {"host", "-a.test", 2006},
		{"host", "fe80::1%eth0", 2006}, {"host", "mail.test\r\nQUIT", 2006}, {"host", "mail\x00.test", 2006},
		{"port", absent, 2000}, {"port", nil, 2000}, {"port", 0, 2009}, {"port", -1, 2009}, {"port", 65536, 2010},
		{"port", "smtp", 2004}, {"port", 2.5, 2004},
		{"username", absent, 2000}, {"username", nil, 2000}, {"username", "", 2000},
		{"username", strings.Repeat("ä", 256), 2008},
		{"password", absent, 2000}, {"password", nil, 2000}, {"password", "  ", 2000},
		{"password", strings.Repeat("ä", 256), 2008}, {"password", "a\x00b", 2006},
		{"name", strings.Repeat("ä", 256), 2008}, {"description", strings.Repeat("ä", 1001), 2008},
		{"securityProtocol", "starttls", 2003}, {"securityProtocol", "", 2000},
		{"status", "UNVERIFIED", 2003}, {"status", "", 2000}, {"hello", 1, 2015},
	} {
		s.Post("/v1/smtpServers", body(server, map[string]any{c.member: c.value})).WantError(400, c.code)
	}
	s.Post("/v1/smtpServers", body(server,
		map[string]any{"name": strings.Repeat("ä", 256), "host": "a b", "port": absent})).WantError(400, 2000)
	s.Post("/v1/smtpServers", body(server,
		map[string]any{"name": strings.Repeat("ä", 256), "host": "a b", "status": "LOST"})).WantError(400, 2003)
	made := s.Post("/v1/smtpServers",
		body(server, map[string]any{"name": strings.Repeat("ä", 255), "description": strings.Repeat("ä", 1000),
			"status": nil})).Want(201)
	for body, code := range map[string]int{`{"host":null}`: 2000, `{"status":null}`: 2000, `{"port":null}`: 2000,
		`{"password":""}`: 2000, `{"username":null}`: 2000, `{"port":70000}`: 2010, `{"hello":1}`: 2015} {
		s.Post(made.Href(), body).WantError(400, code)
	}
	if n := server.Connections(); n != 1 {
		t.Errorf("bodies that are refused made %d connections", n-1)
	}
}

func TestAConnectionIsTestedBeforeAServerIsAdded(t *testing.T) {
	plain, starttls, implicit := relay(t),
		mailtest.Start(t, "", mailtest.Behaviour{User: user, Password: password, TLS: trusted}),
		mailtest.Start(t, "", mailtest.Behaviour{User: user, Password: password, TLS: trusted, Implicit: true})
	elsewhere := mailtest.Start(t, "127.0.0.2:0", mailtest.Behaviour{User: user, Password: password})
	misnamed := mailtest.Start(t, "127.0.0.2:0", mailtest.Behaviour{User: user, Password: password, TLS: trusted})
	open1 := mailtest.Start(t, "", mailtest.Behaviour{})
	gone := mailtest.Start(t, "", mailtest.Behaviour{})
	gone.Stop()
	for _, c := range []struct {
		name   string
		server *mailtest.Server
		change map[string]any
		code   int // 0: taken
	}{
		{"a server without encryption on this machine", plain, nil, 0},
		{"STARTTLS where it is offered", starttls, nil, 0},
		{"STARTTLS", starttls, map[string]any{"securityProtocol": "tls"}, 0},
		{"TLS from the first byte", implicit, map[string]any{"securityProtocol": "ssl"}, 0},
		{"nobody there", gone, nil, 13000},
		{"a host that is not", plain, map[string]any{"host": "nobody.invalid"}, 13000},
		{"a wrong password", starttls, map[string]any{"password": "another"}, 13001},
		{"a wrong username", starttls, map[string]any{"username": "another"}, 13001},
		{"a password whose blanks were cut", starttls, map[string]any{"password": strings.TrimSpace(password)}, 13001},
		{"a server that has no login", open1, nil, 13001},
		{"STARTTLS that is not offered", plain, map[string]any{"securityProtocol": "tls"}, 13002},
		{"TLS that is not spoken", plain, map[string]any{"securityProtocol": "ssl"}, 13002},
		{"a certificate of another host", misnamed, map[string]any{"securityProtocol": "tls"}, 13002},
		{"a password that would be shown to the network", elsewhere, nil, 13002},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := open(t, "127.0.0.0/8")
			a := s.Post("/v1/smtpServers", body(c.server, c.change))
			if c.code == 0 {
				a.Want(201)
				return
			}
			a.WantError(400, c.code)
			if strings.Contains(string(a.Body), "geheim") || strings.Contains(string(a.Body), "another") {
				t.Errorf("the refusal repeats what was sent: %s", a.Body)
			}
			if got := s.Get(s.list()).Want(200).Items(); len(got) != 0 {
				t.Errorf("the server was kept: %v", got)
			}
		})
	}
}

func TestChangedConnectionDataIsTested(t *testing.T) {
	s, server := open(t, "127.0.0.0/8"), relay(t)
	made := s.Post("/v1/smtpServers", body(server, nil)).Want(201)
	before := s.Get(made.Href()).Want(200)
	for body, code := range map[string]int{
		`{"host":"127.0.0.9"}`: 13000, `{"port":1}`: 13000, `{"username":"jo"}`: 13001, `{"password":"jo"}`: 13001,
		`{"securityProtocol":"tls"}`: 13002, `{"securityProtocol":"SSL","name":"new"}`: 13002,
	} {
		s.Post(made.Href(), body).WantError(400, code)
	}
	if after := s.Get(made.Href()).Want(200); string(after.Body) != string(before.Body) {
		t.Errorf("a refused change left %s", after.Body)
	}
	connections := server.Connections()
	s.Post(made.Href(), `{"name":"New","description":"D","status":"DISABLED","host":"127.0.0.1"}`).Want(200)
	if n := server.Connections(); n != connections {
		t.Errorf("a change of other members made %d connections", n-connections)
	}
	server.Behave(func(b *mailtest.Behaviour) { b.Password = "changed" })
	s.Post(made.Href(), `{"password":"changed"}`).Want(200)
	if n := server.Connections(); n != connections+1 {
		t.Errorf("a new password made %d connections", n-connections)
	}
	sealed, err := pg.Value[[]byte](t.Context(), s.db, `SELECT password_sealed FROM smtp_servers`)
	if err != nil {
		t.Fatal(err)
	}
	at, _ := base.Parse(made.Href())
	if got, err := s.ring.Open(sealed, "notification.smtp/"+at.ID.String()); err != nil || got != "changed" {
		t.Errorf("the password became %q, %v", got.Reveal(), err)
	}
}

func TestAddressesThatAreNotPublicAreRefused(t *testing.T) {
	s, server := open(t), relay(t)
	for _, host := range []string{"127.0.0.1", "localhost", "::1", "0.0.0.0", "10.0.0.1", "172.16.5.4", "192.168.0.1",
		"169.254.169.254", "::ffff:127.0.0.1", "fe80::1", "fd00::1", "100.64.0.1", "2130706433", "0x7f000001", "127.1"} {
		a := s.Post("/v1/smtpServers", body(server, map[string]any{"host": host})).WantError(400, 13000)
		if text := a.Text("developerMessage"); strings.Contains(text, "refused") || strings.Contains(text, "lookup") ||
			strings.Contains(text, "dial") {
			t.Errorf("the refusal of %s tells of the network: %s", host, text)
		}
	}
	if n := server.Connections(); n != 0 {
		t.Errorf("%d connections were made", n)
	}
}

func TestOneServerPerTenant(t *testing.T) {
	s, server := open(t, "127.0.0.0/8"), relay(t)
	statuses, codes := make([]int, 50), make([]int, 50)
	var all sync.WaitGroup
	for i := range statuses {
		all.Go(func() {
			a := s.Post("/v1/smtpServers", body(server, nil))
			statuses[i], codes[i] = a.Status, a.Int("code")
		})
	}
	all.Wait()
	made := 0
	for i, status := range statuses {
		switch {
		case status == 201:
			made++
		case status != 400 || codes[i] != 13003:
			t.Errorf("one of the requests got %d, %d", status, codes[i])
		}
	}
	if made != 1 || len(s.Get(s.list()).Items()) != 1 {
		t.Errorf("%d of the requests got a server, and there are %d", made, len(s.Get(s.list()).Items()))
	}
	connections := server.Connections()
	s.Post("/v1/smtpServers", body(server, nil)).WantError(400, 13003)
	if n := server.Connections(); n != connections {
		t.Error("a second server was tried before it was refused")
	}
}

func TestParallelChangesKeepWhatWasTested(t *testing.T) {
	s, first, second := open(t, "127.0.0.0/8"), relay(t),
		mailtest.Start(t, "", mailtest.Behaviour{User: "other", Password: "word"})
	made := s.Post("/v1/smtpServers", body(first, nil)).Want(201)
	port := func(m *mailtest.Server) string { _, port, _ := net.SplitHostPort(m.Address); return port }
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			switch i % 4 {
			case 0:
				s.Post(made.Href(), `{"port":`+port(second)+`,"username":"other","password":"word"}`).Want(200)
			case 1:
				s.Post(made.Href(), body(first, nil)).Want(200)
			case 2: // half of the other's data: refused unless that is there already
				s.Post(made.Href(), `{"port":`+port(second)+`}`)
			default:
				s.Post(made.Href(), `{"description":"`+fmt.Sprint(i)+`"}`).Want(200)
			}
		})
	}
	all.Wait()
	got := s.Get(made.Href()).Want(200)
	users := map[string]string{port(first): user, port(second): "other"}
	if want := users[fmt.Sprint(got.Int("port"))]; got.Text("username") != want {
		t.Errorf("the server is a mixture: %s", got.Body)
	}
}

func TestAnSMTPServerIsIsolatedByTenant(t *testing.T) {
	s, server := open(t, "127.0.0.0/8"), relay(t)
	made := s.Post("/v1/smtpServers", body(server, nil)).Want(201)
	stranger := s.As(caller.Caller{Tenant: id.New(now())})
	stranger.Get(made.Href()).WantError(404, 404)
	stranger.Post(made.Href(), `{"name":"Mine"}`).WantError(404, 404)
	stranger.Delete(made.Href()).Want(204)
	stranger.Get(s.list()).WantError(404, 404)
	s.Get(base.To("tenants", id.New(now()), "smtpServers")).WantError(404, 404)
	s.Get("/v1/smtpServers/nothing").WantError(404, 404)
	s.Get(s.list()+"?hello=1").WantError(400, 2105)
	stranger.Post("/v1/smtpServers", body(server, nil)).Want(201)
	s.Get(made.Href()).Want(200)
}

// silent is a server that takes connections and says nothing.
func silent(t *testing.T) (at *mailtest.Server, reached <-chan struct{}) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	arrived, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		close(arrived)
		_, _ = conn.Read(make([]byte, 1)) // until the other side gives up
		_ = conn.Close()
	}()
	t.Cleanup(func() {
		_ = listener.Close()
		<-done
	})
	return &mailtest.Server{Address: listener.Addr().String()}, arrived
}

func TestNothingIsLockedWhileAServerIsTested(t *testing.T) {
	s, good := open(t, "127.0.0.0/8"), relay(t)
	quiet, reached := silent(t)
	first := make(chan resttest.Answer)
	go func() { first <- s.Post("/v1/smtpServers", body(quiet, nil)) }()
	<-reached
	began := time.Now()
	made := s.Post("/v1/smtpServers", body(good, nil)).Want(201)
	s.Post(made.Href(), `{"name":"Relay"}`).Want(200)
	if took := time.Since(began); took > 8*time.Second {
		t.Errorf("others waited %s", took)
	}
	(<-first).WantError(400, 13000)
	if took := time.Since(began); took > 14*time.Second {
		t.Errorf("a server that says nothing was listened to for %s", took)
	}
}
