package failover

import (
	"context"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/doorward/doorward/deploy/e2e"
	"github.com/doorward/doorward/deploy/e2e/backends"
	"github.com/doorward/doorward/deploy/e2e/harness"
	"github.com/doorward/doorward/pkg/deployment"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/secure"
)

func TestAPoolerThatSharesSessionsIsRefused(t *testing.T) {
	s := backends.NewServers(t)
	server := s.StartPostgres("postgres")
	for _, mode := range []string{"transaction", "session"} { // in the second it refuses search_path
		pooler := s.StartPgBouncer("pgbouncer-"+mode, mode, server, false, "trial")
		s.Refused(pooler.URL("trial", url.Values{"sslmode": {"disable"}}), "pooler", "direct=host:port/database")
	}
}

func TestAPoolerWorksBesideTheAddressOfTheServer(t *testing.T) {
	s := backends.NewServers(t)
	server := s.StartPostgres("postgres")
	if _, err := s.Open(server.URL(backends.Database), "trial"); err != nil {
		t.Fatal(err)
	}
	direct := url.Values{
		"sslmode": {"disable"}, "direct": {strings.Replace(server.Address, "127.0.0.1", "localhost", 1) + "/" + backends.Database},
	}
	s.Refused(s.StartPgBouncer("pgbouncer-plain", "transaction", server, false, "trial").URL("trial", direct), "no encryption")
	direct.Set("sslmode", "prefer")
	s.Refused(s.StartPgBouncer("pgbouncer-unset", "transaction", server, false, "trial").URL("trial", direct),
		"connect_query='SET search_path = trial; SET ROLE doorward_trial'")
	address := s.StartPgBouncer("pgbouncer", "transaction", server, true, append(deployment.Services, "trial")...)
	pooled(t, s, address.URL("trial", direct))
	standalone(t, s, address, direct)
}

// pooled does through a pooler what would fail where clients share sessions.
func pooled(t *testing.T, s *backends.Servers, address string) {
	db, err := s.Open(address, "trial")
	s.Must(err)
	notified := make(chan string, 10)
	db.OnNotify("trial", func(payload string) { notified <- payload })
	ctx, cancel := context.WithCancel(t.Context())
	listening := make(chan struct{})
	go func() { defer close(listening); _ = db.Listen(ctx) }()
	defer func() { cancel(); <-listening }()
	s.Await("a notification", func(ctx context.Context) error {
		if _, err := db.Exec(ctx, `SELECT pg_notify('trial', $1)`, "here"); err != nil {
			return err
		}
		select {
		case <-notified:
			return nil
		default:
			return context.DeadlineExceeded
		}
	})
	failures := make(chan error)
	for i := range 8 { // more than the pooler has sessions
		go func() {
			failures <- db.InTx(ctx, func(tx *pg.Tx) error {
				for range 20 {
					if _, err := pg.Value[int](ctx, tx, `SELECT $1::int + 1`, i); err != nil {
						return err
					}
				}
				return nil
			})
		}()
	}
	for range 8 {
		if err := <-failures; err != nil {
			t.Error(err)
		}
	}
}

// standalone registers users and logs them in while all queries of the product go through
// a pooler.
func standalone(t *testing.T, s *backends.Servers, pooler *backends.PgBouncer, direct url.Values) {
	settings := []string{"DATABASE_URL=postgres://127.0.0.1:1/none", "DOORWARD_MASTER_KEY=" + secure.NewMasterKey("k1").Reveal()}
	for _, service := range deployment.Services {
		settings = append(settings, strings.ToUpper(service)+"_DATABASE_URL="+pooler.URL(service, direct))
	}
	deployed, err := harness.StartStandalone(t.Context(), harness.Config{Dir: filepath.Join(s.Dir, "standalone"), Env: settings})
	s.Must(err)
	t.Cleanup(func() { s.Must(deployed.Stop(context.WithoutCancel(t.Context()))) }) // runs before the servers end
	client, err := e2e.OpenClient(deployed.KeyFile())
	s.Must(err)
	fixture := client.NewVerificationFixture(t)
	for range 5 {
		email := e2e.Unique("pooled") + "@example.test"
		account := client.Create(t, fixture.Directory.Href()+"/accounts", e2e.Object{"email": email, "password": e2e.Password})
		client.Want(t, http.StatusOK, e2e.Request{Method: http.MethodPost, URL: account.Href(), Body: e2e.Object{"status": "ENABLED"}})
		client.Want(t, http.StatusOK, e2e.Login(fixture.Application, email, e2e.Password))
		client.Want(t, http.StatusOK, e2e.Request{Method: http.MethodGet, URL: fixture.Directory.Href() + "/accounts?q=pooled&orderBy=email"})
	}
}
