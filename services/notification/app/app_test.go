package app_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/cache"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/env"
	"github.com/doorward/doorward/pkg/events"
	"github.com/doorward/doorward/pkg/events/outbox"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/pg/pgtest"
	"github.com/doorward/doorward/pkg/rest"
	"github.com/doorward/doorward/pkg/run"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/pkg/service"
	"github.com/doorward/doorward/pkg/telemetry"
	"github.com/doorward/doorward/services/notification/app"
	"github.com/doorward/doorward/services/notification/mailtest"
	"github.com/doorward/doorward/services/notification/smstest"
)

// process is set where the test binary plays the service's process: to its lease
// time, or 0s for that of the product.
const process = "NOTIFICATION_PROCESS"

func TestMain(m *testing.M) {
	if text := os.Getenv(process); text != "" {
		leaseTime, err := time.ParseDuration(text)
		if err != nil {
			panic(err)
		}
		fromEnv := func(source *env.Source) app.Config {
			cfg := env.Load[app.Config](source)
			cfg.LeaseTime = leaseTime
			return cfg
		}
		run.Main("notification", "as the tests start it", fromEnv,
			func(ctx context.Context, p *run.Process, cfg app.Config) error {
				return service.Run(ctx, p, cfg, app.Open)
			})
	}
	pgtest.Main(m)
}

// leaseTime is that of processes which are killed. What they hold waits for it, and
// a process that is alive renews its leases three times in it, also on a machine
// that is busy.
const leaseTime = 3 * time.Second

const secret = secure.Secret("0123456789abcdef0123456789abcdef")

// world is all that the service needs around it: PostgreSQL, Kafka, a mail
// server, and a directory service that emits events and answers questions.
type world struct {
	t      *testing.T
	mail   *mailtest.Server
	env    []string
	outbox *outbox.Outbox
	db     *pg.DB
	ring   *secure.Keyring
	tenant id.ID

	brokers []string
}

func now() time.Time { return time.Now().UTC().Truncate(time.Millisecond) }

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, mail: mailtest.Start(t, "", mailtest.Behaviour{}), tenant: id.New(now())}
	broker, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.AllowAutoTopicCreation())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(broker.Close)
	url, master := pgtest.New(t, nil), secure.NewMasterKey("test")
	if w.ring, err = secure.ParseKeyring(master); err != nil {
		t.Fatal(err)
	}
	w.brokers = broker.ListenAddrs()
	cfg := outbox.Config{Brokers: broker.ListenAddrs(), Partitions: 2, Secret: secret}

	db, err := pg.Open(t.Context(),
		pg.Config{URL: secure.Secret(url), Schema: "directory", Migrations: []fs.FS{outbox.Migrations()}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	w.db = db
	w.outbox = outbox.New(db, "directory", now)
	ctx, cancel := context.WithCancel(context.Background())
	relayed := make(chan error)
	go func() { relayed <- w.outbox.Relay(cfg)(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-relayed; err != nil {
			t.Error(err)
		}
	})
	w.env = []string{
		"DATABASE_URL=" + url, "KAFKA_BROKERS=" + strings.Join(cfg.Brokers, ","), "DOORWARD_KAFKA_PARTITIONS=2",
		"DOORWARD_MASTER_KEY=" + master.Reveal(), "DOORWARD_INTERNAL_SECRET=" + secret.Reveal(),
		"DOORWARD_BASE_URL=https://localhost:8443/v1", "DOORWARD_LISTEN=127.0.0.1:0", "DOORWARD_OPS_LISTEN=127.0.0.1:0",
		"DOORWARD_DIRECTORY_URL=http://" + w.directory(), "DOORWARD_APPLICATION_URL=http://127.0.0.1:1",
		"DOORWARD_OAUTH_URL=http://127.0.0.1:1",
		"DOORWARD_SMTP_URL=smtp://" + w.mail.Address, "DOORWARD_LOG_LEVEL=error",
	}
	return w
}

// peer answers as the directory service does, in process and over HTTP.
type peer struct{ directoryapi.Contract }

func (peer) Mail(_ context.Context, in directoryapi.MailOf) (directoryapi.Mail, error) {
	return directoryapi.Mail{
		Template: directoryapi.EmailTemplate{Workflow: in.Workflow, Subject: string(in.Workflow), MimeType: "text/plain",
			TextBody: "$!{url}"},
		Account: directoryapi.Account{ID: in.Account, Email: address(in.Account)},
	}, nil
}

// Tenant returns an enabled tenant, which is asked for each time.
func (peer) Tenant(_ context.Context, in directoryapi.Ref) (directoryapi.Tenant, error) {
	return directoryapi.Tenant{ID: in.ID, Status: directoryapi.Enabled}, nil
}

// DeletedTenants returns none.
func (peer) DeletedTenants(context.Context, directoryapi.Empty) (directoryapi.DeletedTenants, error) {
	return directoryapi.DeletedTenants{}, nil
}

func (peer) AccessChanges(context.Context, cache.Position) (cache.Page, error) {
	return cache.Page{Behind: true}, nil
}

func address(account id.ID) string { return account.String() + "@example.test" }

// directory serves the peer and returns its address.
func (w *world) directory() string {
	server := rest.New(rest.Config{Service: "directory", Base: "https://localhost:8443/v1",
		Signer: caller.NewSigner(secret, now)})
	directoryapi.Serve(rest.Contract(server), peer{})
	return listen(w.t, server.Listener, server.Shutdown)
}

// open starts the service in this process.
func (w *world) open(exporter *tracetest.InMemoryExporter) (*run.Process, *service.App[struct{}]) {
	w.t.Helper()
	source := env.New(w.env)
	var cfg run.Config
	source.Load(&cfg)
	own := env.Load[app.Config](source)
	if err := source.Err(); err != nil {
		w.t.Fatal(err)
	}
	p, err := run.New(w.t.Context(), "notification", cfg, io.Discard)
	if err != nil {
		w.t.Fatal(err)
	}
	if exporter != nil {
		p.Telemetry.SetTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter)))
	}
	a, err := app.Open(w.t.Context(), p, own, app.Peers{Directory: peer{}, Application: struct{ applicationapi.API }{}})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		if err := p.Close(); err != nil {
			w.t.Error(err)
		}
	})
	return p, a
}

// start starts the service as a process of its own.
func (w *world) start() *exec.Cmd {
	w.t.Helper()
	command := exec.Command(os.Args[0])
	command.Env = append(w.env, process+"="+leaseTime.String())
	command.Stderr = os.Stderr
	if err := command.Start(); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	})
	return command
}

// register emits the event of a registration, with its token.
func (w *world) register(ctx context.Context) (account id.ID, token secure.Secret) {
	w.t.Helper()
	account, token = id.New(now()), secure.Token(22)
	err := w.outbox.InTx(ctx, func(tx *outbox.Tx) error {
		return tx.Emit(ctx, events.AccountRegistered{Tenant: w.tenant, Account: account,
			Token: w.ring.Seal(token, events.MailTokenPurpose(account))})
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return account, token
}

// repeat leaves an event under the given id to be sent with the next one, as a relay
// does that died before it could note that it had sent it.
func (w *world) repeat(event id.ID, kind string, fact events.Event) {
	w.t.Helper()
	data, err := json.Marshal(fact)
	if err != nil {
		w.t.Fatal(err)
	}
	tenant, subject := fact.About()
	envelope, err := json.Marshal(events.Envelope{ID: event, Type: kind, Tenant: tenant, Subject: subject, At: now(),
		Data: data})
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := pg.Exec(w.t.Context(), w.db, `INSERT INTO outbox (tenant_id, id, topic, key, envelope)
		VALUES ($1, $2, $3, $4, $5)`, tenant, id.New(now()), outbox.Topic("directory"), subject, envelope); err != nil {
		w.t.Fatal(err)
	}
}

func TestAnEventBecomesAMailInOneTrace(t *testing.T) {
	w, exporter := newWorld(t), tracetest.NewInMemoryExporter()
	p, _ := w.open(exporter)
	ctx, root := telemetry.Span(t.Context(), "register")
	account, token := w.register(ctx)
	root.End()

	m := w.mail.Await(t, 1)[0]
	if m.To != address(account) || m.Subject != "verification" || m.From != "no-reply@localhost" ||
		m.FromName != "Doorward" {
		t.Errorf("the mail is %+v", m)
	}
	if want := "https://localhost:8443/emailVerificationTokens?sptoken=" +
		token.Reveal(); strings.TrimSpace(m.Text) != want {
		t.Errorf("the mail leads to %s, want %s", m.Text, want)
	}

	want := []string{"send mail", "consume AccountRegistered", "register"}
	var path []string
	await(t, "the span of the mail", func() bool {
		spans := map[string]tracetest.SpanStub{}
		for _, span := range exporter.GetSpans() {
			spans[span.SpanContext.SpanID().String()] = span
		}
		for _, span := range spans {
			if span.Name != "send mail" {
				continue
			}
			for path = nil; span.Name != ""; span = spans[span.Parent.SpanID().String()] {
				path = append(path, span.Name)
			}
			return strings.Join(path, " < ") == strings.Join(want, " < ")
		}
		return false
	})
	for _, span := range exporter.GetSpans() {
		if span.SpanContext.TraceID() != root.SpanContext().TraceID() {
			t.Errorf("the span %q is in a trace of its own", span.Name)
		}
	}

	answer := httptest.NewRecorder()
	p.Telemetry.Metrics.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	for _, metric := range []string{`doorward_notification_mails_total{result="sent",workflow="verification"} 1`,
		"doorward_notification_deliveries_waiting 0"} {
		if !strings.Contains(answer.Body.String(), metric) {
			t.Errorf("the metrics lack %s", metric)
		}
	}
}

func TestAnEventThatComesTwiceBecomesOneMail(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.open(nil)
	account, event := id.New(now()), id.New(now())
	registered := events.AccountRegistered{Tenant: w.tenant, Account: account,
		Token: w.ring.Seal("t0ken", events.MailTokenPurpose(account))}
	for range 3 {
		w.repeat(event, "AccountRegistered", registered)
	}
	// What comes afterwards on the same partition shows that all three were read.
	err := w.outbox.InTx(t.Context(), func(tx *outbox.Tx) error {
		return tx.Emit(t.Context(), events.AccountVerified{Tenant: w.tenant, Account: account})
	})
	if err != nil {
		t.Fatal(err)
	}
	subjects := map[string]int{}
	for _, m := range w.mail.Await(t, 3) {
		subjects[m.Subject]++
	}
	if len(subjects) != 3 || subjects["verification"] != 1 || subjects["verificationSuccess"] != 1 ||
		subjects["welcome"] != 1 {
		t.Errorf("the mails are %v", subjects)
	}
}

// A code on its way: the event of the mfa service, the provider, its receipt by
// way of the gateway, and the news for the mfa service.
func TestAnEventBecomesAnSMSAndItsReceiptAnEvent(t *testing.T) {
	w, provider := newWorld(t), smstest.Start(t)
	w.env = append(w.env, "DOORWARD_SMS_PROVIDER=twilio", "DOORWARD_SMS_TWILIO_URL="+provider.URL,
		"DOORWARD_SMS_TWILIO_ACCOUNT_SID="+smstest.Account,
		"DOORWARD_SMS_TWILIO_AUTH_TOKEN="+smstest.Token, "DOORWARD_SMS_TWILIO_FROM=+15005550006")
	exporter := tracetest.NewInMemoryExporter()
	p, a := w.open(exporter)
	mfa := outbox.New(w.db, "mfa", now)
	reported := make(chan events.TextReported, 10)
	cfg := outbox.Config{Brokers: w.brokers, Partitions: 2, Secret: secret}
	p.Go("mfa relay", mfa.Relay(cfg))
	p.Go("mfa", mfa.Consume(cfg, []string{"notification"}, events.On(
		func(_ context.Context, _ events.Envelope, event events.TextReported) error {
			reported <- event
			return nil
		})))
	challenge, account := id.New(now()), id.New(now())
	err := mfa.InTx(t.Context(), func(tx *outbox.Tx) error {
		return tx.Emit(t.Context(), events.ChallengeCreated{
			Tenant: w.tenant, Account: account, Challenge: challenge, Number: "+18883910959", Message: "Code ${code}",
			Code: w.ring.Seal("493817", events.CodePurpose(challenge)), ExpiresAt: now().Add(5 * time.Minute),
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	want := func(news events.SMSStatus) {
		t.Helper()
		select {
		case got := <-reported:
			if want := (events.TextReported{Tenant: w.tenant, Account: account, Challenge: challenge,
				Status: news}); got != want {
				t.Errorf("the news are %+v, want %+v", got, want)
			}
		case <-time.After(30 * time.Second):
			t.Fatalf("the news %s did not come", news)
		}
	}
	want(events.SMSAccepted)
	asked := provider.Asked()
	if len(asked) != 1 || asked[0].Get("Body") != "Code 493817" || asked[0].Get("To") != "+18883910959" {
		t.Fatalf("the provider was asked %v", asked)
	}
	callback := asked[0].Get("StatusCallback")
	path, ok := strings.CutPrefix(callback, "https://localhost:8443")
	if !ok {
		t.Fatalf("receipts go to %s", callback)
	}
	send := func(signature, form string) int {
		t.Helper()
		request := httptest.NewRequest(http.MethodPost, path, strings.NewReader(form))
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		request.Header.Set("X-Twilio-Signature", signature)
		request.Header.Set(caller.Header, caller.NewSigner(secret, now).Sign(caller.Caller{})) // the gateway knows nobody
		answer, err := a.HTTP.Test(request, -1)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		return answer.StatusCode
	}
	signature := smstest.Sign(smstest.Token, callback, "MessageStatusdelivered")
	for form, status := range map[string]int{"MessageStatus=undelivered": 403, "MessageStatus=delivered&x=1": 403,
		"%zz": 400, strings.Repeat("x", 65<<10): 413} {
		if got := send(signature, form); got != status {
			t.Errorf("the form %.30s returns %d, want %d", form, got, status)
		}
	}
	for range 2 {
		if got := send(signature, "MessageStatus=delivered"); got != http.StatusNoContent {
			t.Errorf("the receipt returns %d", got)
		}
	}
	want(events.SMSDelivered)
	for _, span := range exporter.GetSpans() {
		if text := fmt.Sprint(span.Name, span.Attributes, span.Status, span.Events); strings.Contains(text, "493817") ||
			strings.Contains(text, "8883910959") {
			t.Errorf("a span tells %s", text)
		}
	}
	answer := httptest.NewRecorder()
	p.Telemetry.Metrics.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if !strings.Contains(answer.Body.String(), `doorward_notification_texts_total{result="sent",workflow="challenge"} 1`) {
		t.Error("the metrics lack the text")
	}
}

func TestAKilledProcessRepeatsAtMostOneMail(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.env = append(w.env, "DOORWARD_MAIL_TIMEOUT=1s", "DOORWARD_MAIL_SENDERS=1")
	killed := make(chan struct{})
	first := w.start()
	w.mail.Behave(func(b *mailtest.Behaviour) {
		b.Data = func(mailtest.Message) error {
			w.mail.Behave(func(b *mailtest.Behaviour) { b.Data = nil })
			_ = first.Process.Signal(syscall.SIGKILL)
			_, _ = first.Process.Wait()
			close(killed)
			return nil // to nobody
		}
	})
	const mails = 5
	for range mails {
		w.register(t.Context())
	}
	<-killed
	w.start()
	count, total := map[string]int{}, 0
	for _, m := range w.mail.Await(t, mails+1) {
		count[m.To+" "+m.ID]++
		total++
	}
	if len(count) != mails || total != mails+1 {
		t.Errorf("%d mails came of %d deliveries: %v", total, len(count), count)
	}
}

func TestTheServiceAnswersTheGatewayAlone(t *testing.T) {
	w := newWorld(t)
	_, a := w.open(nil)
	for signed, want := range map[string]int{"": http.StatusForbidden,
		caller.NewSigner(secret, now).Sign(caller.Caller{Tenant: w.tenant}): http.StatusNotFound} {
		request := httptest.NewRequest(http.MethodGet, "/v1/nothing", nil)
		if signed != "" {
			request.Header.Set(caller.Header, signed)
		}
		answer, err := a.HTTP.Test(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		if answer.StatusCode != want {
			t.Errorf("the status is %d, want %d", answer.StatusCode, want)
		}
	}
}

func TestAHalfConfigurationIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, c := range []struct{ variable, says string }{
		{"DOORWARD_SMTP_URL=smtp://jo:geheim@localhost", "DOORWARD_SMTP_URL is not of the form"},
		{"DOORWARD_SMTP_URL=", "DOORWARD_SMTP_URL is missing"},
		{"DOORWARD_MAIL_FROM=nobody", "DOORWARD_MAIL_FROM must be an email address"},
		{"DOORWARD_MAIL_FROM=Jo <jo@example.test>", "DOORWARD_MAIL_FROM must be an email address"},
		{"DOORWARD_SMTP_PRIVATE_NETWORKS=ten", `DOORWARD_SMTP_PRIVATE_NETWORKS: "ten" is not a network`},
		{"DOORWARD_MAIL_TIMEOUT=0s", "DOORWARD_MAIL_TIMEOUT must be longer"},
		{"DOORWARD_MASTER_KEY=k1:short", "DOORWARD_MASTER_KEY: the master key"},
		{"DOORWARD_DIRECTORY_URL=localhost", "DOORWARD_DIRECTORY_URL: the address"},
		{"DOORWARD_SMS_PROVIDER=pigeon", "DOORWARD_SMS_PROVIDER must be"},
		{"DOORWARD_SMS_PROVIDER=twilio", "is missing, which DOORWARD_SMS_PROVIDER=twilio needs"},
		{"DOORWARD_SMS_PROVIDER=mailbox", "DOORWARD_SMS_MAILBOX_URL is not of the form"},
		{"DOORWARD_SMS_MAILBOX_URL=http://mailbox:8025", "DOORWARD_SMS_PROVIDER is not mailbox"},
		{"DOORWARD_SMS_TWILIO_AUTH_TOKEN=geheim", "DOORWARD_SMS_PROVIDER is not twilio"},
		{"DOORWARD_SMS_SENDERS=0", "DOORWARD_SMS_SENDERS"},
		{"DOORWARD_MAIL_FORM=a@b.c", "DOORWARD_MAIL_FORM is not a variable of this process"},
	} {
		command := exec.Command(os.Args[0])
		command.Env = append(append([]string{}, w.env...), process+"=0s", c.variable)
		out, err := command.CombinedOutput()
		if err == nil || !strings.Contains(string(out), c.says) || strings.Contains(string(out), "geheim") {
			t.Errorf("with %s the process ends with %v and says:\n%s", c.variable, err, out)
		}
	}
}
