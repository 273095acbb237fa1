package app

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"filippo.io/age"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/doorward/doorward/pkg/env"
	"github.com/doorward/doorward/pkg/operatorlog"
	"github.com/doorward/doorward/pkg/pg/private"
	"github.com/doorward/doorward/pkg/reseal"
	"github.com/doorward/doorward/pkg/run"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/pkg/telemetry"
	"github.com/doorward/doorward/pkg/worktest"
)

// product is a standalone within the test.
type product struct {
	*testing.T
	dir    string
	source *env.Source
	key    apiKeyFile
	spans  *tracetest.InMemoryExporter
	client *http.Client
	stop   func()
	ended  chan error // how the process ended
}

// start runs a standalone on a free port until the test ends or stop is called.
func start(t *testing.T, dir string, environ ...string) *product {
	t.Helper()
	p := &product{T: t, dir: dir, spans: tracetest.NewInMemoryExporter()}
	source := env.New(append([]string{
		"DOORWARD_DATA_DIR=" + dir, "DOORWARD_LISTEN=localhost:0", "DOORWARD_ARGON2_MEMORY=64", "PATH=" + os.Getenv("PATH"),
	}, environ...))
	p.source = source
	cfg := FromEnv(source)
	source.Declare(new(run.Config)) // as run.Main does
	settings := run.Config{OpsListen: "127.0.0.1:0", Stop: 20 * time.Second, Telemetry: telemetry.Config{LogLevel: "warn"}}
	process, err := run.New(t.Context(), "doorward", settings, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	process.Telemetry.SetTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSyncer(p.spans)))
	var greeting bytes.Buffer
	if err := runTo(t.Context(), process, cfg, &greeting); err != nil {
		t.Fatal(errors.Join(err, process.Close()))
	}
	ctx, cancel := context.WithCancel(context.Background())
	p.ended = make(chan error, 1)
	go func() { p.ended <- process.Wait(ctx) }()
	p.stop = func() {
		if ctx.Err() != nil {
			return
		}
		cancel()
		if err := <-p.ended; err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(p.stop)
	content, err := os.ReadFile(filepath.Join(dir, "apikey.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(content, &p.key); err != nil {
		t.Fatal(err)
	}
	authority, err := os.ReadFile(p.key.CAFile)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(authority)
	p.client = &http.Client{
		Transport:     &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	for _, want := range []string{
		p.key.BaseURL, p.key.CAFile, "curl -sL -K " + filepath.Join(dir, "curl.conf"), "/_mailbox", "http://" + process.Ops,
	} {
		if !strings.Contains(greeting.String(), want) {
			t.Errorf("the greeting does not show %q:\n%s", want, greeting.String())
		}
	}
	if strings.Contains(greeting.String(), p.key.Secret) {
		t.Error("the greeting shows the API key's secret")
	}
	return p
}

// newFolder returns an empty folder for the data of a standalone, which is removed
// when the test ends. The account of PostgreSQL reaches it; t.TempDir is closed to that
// when the tests run as root.
func newFolder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp(private.Scratch(), "standalone-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	if err := os.Chmod(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	return dir
}

// copyFolder returns a copy of the data folder of a standalone that has stopped.
func copyFolder(t *testing.T, from string) string {
	t.Helper()
	dir := newFolder(t)
	if out, err := exec.CommandContext(t.Context(), "cp", "-RPp", from+"/.", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return dir
}

// The first start makes the database, which takes the most of a test; so what is
// true of any standalone is tried on one, and what changes it on copies of its folder.
// No other runs beside the one whose spans are read: the tracer belongs to the process.
func TestStandalone(t *testing.T) {
	p := start(t, newFolder(t), "DOORWARD_OPERATOR_LISTEN="+operatorAddress, "DOORWARD_OPERATOR_KEYS="+operatorKeys)
	while := func(name string, test func(p *product)) {
		t.Run("while it runs, "+name, func(t *testing.T) {
			one := *p
			one.T = t
			test(&one)
		})
	}
	while("its secrets are readable by their owner alone", secretsAreReadableByTheirOwnerAlone)
	while("its data folder serves no other process", dataFolderServesOneProcess)
	while("its private servers ask for a password", privateServersAskForAPassword)
	while("the spans of a login are those of the documentation", spansOfALoginAreThoseOfTheDocumentation)
	while("one trace joins a request and its mail", oneTraceJoinsTheRequestAndItsMail)
	while("its dead letters are listed, retried and dropped", deadLettersAreResolved)
	while("failed logins are found and explained", failedLoginsAreFoundAndExplained)
	while("operators look tenants up, and suspend them", operatorsLookTenantsUp)
	while("operators look the tenants of mailed links up", operatorsLookMailedLinksUp)
	while("operators create a tenant and delete it", operatorsCreateAndDeleteATenant)
	while("a backup of it is restored", aBackupOfARunningProcessIsRestored)
	while("a backup that fails leaves nothing", aBackupThatFailsLeavesNothing)
	p.stop()
	once := func(name string, test func(t *testing.T, dir string)) {
		t.Run("once it has run, "+name, func(t *testing.T) {
			t.Parallel()
			test(t, copyFolder(t, p.dir))
		})
	}
	once("another start keeps everything", anotherStartKeepsEverything)
	once("an operator makes an administrator's key, with and without a running process", anOperatorMakesAnAdministratorKey)
	once("the process ends after its PostgreSQL", theProcessEndsAfterItsPostgreSQL)
	once("the doctor looks at it, with and without its process", theDoctorLooksAtAStandalone)
	once("events that were sent and not handled come again after a restore", eventsThatWereSentAndNotHandledComeAgain)
	once("older backups are dropped", olderBackupsAreDropped)
	once("broken backups are refused", brokenBackupsAreRefused)
	once("the master keys of its data folder are rotated", masterKeysOfADataFolderAreRotated)
}

// send sends a request with the API key and wants a status.
func (p *product) send(method, url, body string, want int) (map[string]any, http.Header) {
	p.Helper()
	if strings.HasPrefix(url, "/") {
		url = p.key.BaseURL + url
	}
	request, err := http.NewRequestWithContext(p.Context(), method, url, strings.NewReader(body))
	if err != nil {
		p.Fatal(err)
	}
	request.SetBasicAuth(p.key.ID, p.key.Secret)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json")
	response, err := p.client.Do(request)
	if err != nil {
		p.Fatal(err)
	}
	content, err := io.ReadAll(response.Body)
	if err := errors.Join(err, response.Body.Close()); err != nil {
		p.Fatal(err)
	}
	if response.StatusCode != want {
		p.Fatalf("%s %s: status %d, want %d: %s", method, url, response.StatusCode, want, content)
	}
	var object map[string]any
	_ = json.Unmarshal(content, &object) // a redirect has no body
	return object, response.Header
}

func href(object map[string]any, link ...string) string {
	for _, name := range link {
		object, _ = object[name].(map[string]any)
	}
	text, _ := object["href"].(string)
	return text
}

// mails waits for n mails.
func (p *product) mails(n int) []any {
	p.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for tick := time.NewTicker(20 * time.Millisecond); ; <-tick.C {
		box, _ := p.send("GET", strings.TrimSuffix(p.key.BaseURL, "/v1")+"/_mailbox", "", 200)
		if messages, _ := box["messages"].([]any); len(messages) >= n {
			tick.Stop()
			return messages
		}
		if time.Now().After(deadline) {
			p.Fatalf("timeout: waited for %d mails", n)
		}
	}
}

// verifying returns a directory whose registrations must be verified, and the
// address of its application.
func (p *product) verifying() (application string) {
	p.Helper()
	made, _ := p.send("POST", "/applications?createDirectory=true", fmt.Sprintf(`{"name":%q}`, p.Name()), 201)
	mapping, _ := p.send("GET", href(made, "defaultAccountStoreMapping"), "", 200)
	directory, _ := p.send("GET", href(mapping, "accountStore"), "", 200)
	p.send("POST", href(directory, "accountCreationPolicy"), `{"verificationEmailStatus":"ENABLED"}`, 200)
	return href(made)
}

func oneTraceJoinsTheRequestAndItsMail(p *product) {
	application, before := p.verifying(), len(p.mails(0))
	wants := [][]string{
		{"application POST", "POST"},
		{"INSERT", "application POST", "POST"},                    // SQL, in the directory service
		{"publish", "POST"},                                       // Redis, where the gateway tells the others
		{"publish AccountRegistered", "application POST", "POST"}, // Kafka
		{"consume AccountRegistered", "application POST", "POST"},
		{"INSERT", "consume AccountRegistered", "POST"},
		{"send mail", "consume AccountRegistered", "POST"},
	}
	// The gateway tells about one request in a tenth of a second: the trace of
	// one of the first registrations has it, where no other requests come between.
	deadline := time.Now().Add(30 * time.Second)
	for n := 1; ; n++ {
		p.spans.Reset()
		p.send("POST", application+"/accounts", fmt.Sprintf(`{"email":"jo%d@example.test","password":"Changeme1!"}`, n), 201)
		paths := p.registration()
		missing := slices.DeleteFunc(slices.Clone(wants), func(want []string) bool {
			return slices.ContainsFunc(paths, func(names []string) bool { return descends(names, want) })
		})
		if len(missing) == 0 {
			p.mails(before + n)
			return
		}
		if missing[0][0] != "publish" || len(missing) > 1 || time.Now().After(deadline) {
			for _, names := range paths {
				p.Log(strings.Join(names, " < "))
			}
			p.Fatalf("no span in the trace of the request is each of %q", missing)
		}
	}
}

// registration waits until the spans of a registration have ended, and returns
// each with the names of those above it, up to the root of its trace.
func (p *product) registration() (paths [][]string) {
	p.Helper()
	var spans tracetest.SpanStubs
	ended := func(name string) bool {
		return slices.ContainsFunc(spans, func(s tracetest.SpanStub) bool { return s.Name == name })
	}
	worktest.Await(p, "the spans of the mail", func() bool {
		spans = p.spans.GetSpans()
		return ended("send mail") && ended("consume AccountRegistered") // the last to end
	})
	byID := map[trace.SpanID]tracetest.SpanStub{}
	for _, span := range spans {
		byID[span.SpanContext.SpanID()] = span
	}
	for _, span := range spans {
		var names []string
		for known := true; known; span, known = byID[span.Parent.SpanID()] {
			names = append(names, span.Name)
		}
		if names[len(names)-1] == "POST /v1/applications/:id/accounts" {
			paths = append(paths, names)
		}
	}
	return paths
}

// descends reports whether a span of the wanted name has the other wanted ones
// above it, in their order, with others between them allowed. A wanted name may
// leave out the path that a span's name ends with.
func descends(path, want []string) bool {
	matches := func(name, want string) bool {
		return name == want || strings.HasPrefix(name, want+" /v1/")
	}
	if !matches(path[0], want[0]) {
		return false
	}
	for _, name := range path {
		if len(want) > 0 && matches(name, want[0]) {
			want = want[1:]
		}
	}
	return len(want) == 0
}

func anotherStartKeepsEverything(t *testing.T, dir string) {
	p := start(t, dir)
	first := p.key
	before := len(p.mails(0))
	account, _ := p.send("POST", p.verifying()+"/accounts", `{"email":"jo@example.test","password":"Changeme1!"}`, 201)
	mails := fmt.Sprint(p.mails(before + 1))
	authority, err := os.ReadFile(first.CAFile)
	if err != nil {
		t.Fatal(err)
	}
	p.stop()

	p = start(t, dir)
	if p.key.ID != first.ID || p.key.Secret != first.Secret {
		t.Error("the key changed")
	}
	_, path, _ := strings.Cut(href(account), "/v1")
	p.send("GET", path, "", 200)
	if got := fmt.Sprint(p.mails(before + 1)); got != mails {
		t.Errorf("the mails changed: %s", got)
	}
	if again, err := os.ReadFile(first.CAFile); err != nil || !bytes.Equal(again, authority) {
		t.Errorf("the certificate authority changed: %v", err)
	}
}

func secretsAreReadableByTheirOwnerAlone(p *product) {
	properties := "apiKey-" + p.key.ID + ".properties"
	for _, name := range []string{"apikey.json", properties, "curl.conf", "secrets.json", "ca-key.pem", "server-key.pem"} {
		info, err := os.Stat(filepath.Join(p.dir, name))
		if err != nil {
			p.Error(err)
			continue
		}
		if info.Mode().Perm() != 0o600 {
			p.Errorf("%s has the mode %v", name, info.Mode())
		}
	}
}

func dataFolderServesOneProcess(p *product) {
	if _, err := lockFolder(p.dir); err == nil || !strings.Contains(err.Error(), "DOORWARD_DATA_DIR") {
		p.Fatalf("a second process opens the folder: %v", err)
	}
}

func anOperatorMakesAnAdministratorKey(t *testing.T, dir string) {
	p := start(t, dir)
	_, header := p.send("GET", "/tenants/current", "", 302)
	current, _ := p.send("GET", header.Get("Location"), "", 200)
	tenant, _ := current["key"].(string)
	p.key = p.administratorKey(tenant)
	p.send("GET", href(current), "", 200)
	p.stop()
	made := p.administratorKey(tenant)
	p = start(t, p.dir)
	p.key.ID, p.key.Secret = made.ID, made.Secret
	p.send("GET", "/tenants/current", "", 302)
	if err := AdminKey(t.Context(), dataFolder(p.dir), "none", "", new(operatorlog.Event), io.Discard); err == nil {
		t.Error("a tenant that does not exist gets a key")
	}
	if err := AdminKey(t.Context(), dataFolder(t.TempDir()), tenant, "", new(operatorlog.Event), io.Discard); !errors.Is(err, ErrUsage) {
		t.Errorf("with a folder without data the command returns %v, want a usage error", err)
	}
	other := "DOORWARD_MASTER_KEY=" + secure.NewMasterKey("k1").Reveal()
	err := AdminKey(t.Context(), dataFolder(p.dir, other), tenant, "", new(operatorlog.Event), io.Discard)
	if !errors.Is(err, reseal.ErrMasterKey) {
		t.Errorf("with another master key the command returns %v", err)
	}
	mine, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	pod := dataFolder(p.dir, "KUBERNETES_SERVICE_HOST=10.0.0.1")
	err = AdminKey(t.Context(), pod, tenant, mine.Recipient().String(), new(operatorlog.Event), &out)
	var sealedKey struct{ ID, Secret, Sealed string }
	if err := errors.Join(err, json.Unmarshal(out.Bytes(), &sealedKey)); err != nil || sealedKey.Secret != "" {
		t.Fatalf("for a recipient the key is %s, %v", out.String(), err)
	}
	p.key.ID, p.key.Secret = sealedKey.ID, openSealed(t, sealedKey.Sealed, mine)
	p.send("GET", "/tenants/current", "", 302)
	out.Reset()
	err = OperatorEvents(t.Context(), dataFolder(p.dir), tenant, "1h", false, &out)
	keys := regexp.MustCompile(`(?m) DONE jo \S+ admin key locked out$`).FindAllString(out.String(), -1)
	if err != nil || len(keys) != 2 {
		t.Errorf("the record of the two keys is %q, %v", out.String(), err)
	}
}

// administratorKey makes another key of the tenant's owner.
func (p *product) administratorKey(tenant string) apiKeyFile {
	p.Helper()
	var out bytes.Buffer
	source := dataFolder(p.dir, "DOORWARD_OPERATOR=jo")
	err := Record(p.Context(), source, Change{Command: "admin key", Reason: "locked out"}, func(e *operatorlog.Event) error {
		return AdminKey(p.Context(), source, tenant, "", e, &out)
	})
	if err != nil {
		p.Fatal(err)
	}
	made := p.key
	if err := json.Unmarshal(out.Bytes(), &made); err != nil || made.ID == p.key.ID {
		p.Fatalf("the key is %s, %v", out.String(), err)
	}
	return made
}

func theProcessEndsAfterItsPostgreSQL(t *testing.T, dir string) {
	p := start(t, dir)
	content, err := os.ReadFile(filepath.Join(p.dir, "postgres", "data", "postmaster.pid"))
	if err != nil {
		t.Fatal(err)
	}
	line, _, _ := strings.Cut(string(content), "\n")
	pid, err := strconv.Atoi(line)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	limit := time.NewTimer(10 * time.Second) // two on an idle machine
	defer limit.Stop()
	select {
	case err := <-p.ended:
		if err == nil || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), "PostgreSQL in") {
			t.Errorf("the process ends with %v", err)
		}
		p.ended <- nil // for stop
	case <-limit.C:
		t.Fatal("the process goes on without its database")
	}
}

func privateServersAskForAPassword(p *product) {
	var at struct {
		Redis string `env:"REDIS_URL"`
		Kafka string `env:"KAFKA_BROKERS"`
	}
	p.source.Load(&at)
	redis, err := url.Parse(at.Redis)
	if err != nil {
		p.Fatal(err)
	}
	if answer := p.exchange(redis.Host, "*1\r\n$4\r\nPING\r\n"); !strings.HasPrefix(answer, "-NOAUTH") {
		p.Errorf("Redis answers %q", answer)
	}
	// A request for metadata, version 0, of all topics. It closes the connection.
	metadata := "\x00\x00\x00\x0e" + "\x00\x03\x00\x00" + "\x00\x00\x00\x01" + "\xff\xff" + "\x00\x00\x00\x00"
	if answer := p.exchange(at.Kafka, metadata); answer != "" {
		p.Errorf("Kafka answers %q", answer)
	}
}

// exchange returns the first bytes that a server answers, none where it closes
// the connection.
func (p *product) exchange(address, request string) string {
	p.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		p.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		p.Fatal(err)
	}
	if _, err := io.WriteString(conn, request); err != nil {
		p.Fatal(err)
	}
	answer := make([]byte, 100)
	n, err := conn.Read(answer)
	if err != nil && !errors.Is(err, io.EOF) {
		p.Fatal(err)
	}
	return string(answer[:n])
}

func TestAnAddressThatIsNoneIsSaidToBeNone(t *testing.T) {
	for address, want := range map[string]string{
		"foo": `DOORWARD_LISTEN: "foo" is not a host and a port`, "192.0.2.1:0": "choose an address of this machine",
	} {
		if _, err := listen(env.New([]string{"DOORWARD_LISTEN=" + address})); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("listen on %s: %v, want %q", address, err, want)
		}
	}
}

func TestEachVariableHasAHelpText(t *testing.T) {
	source := env.New(nil)
	FromEnv(source)
	source.Load(new(run.Config))
	var out strings.Builder
	source.Help(&out)
	variables := regexp.MustCompile(`(?m)^  ([A-Z][A-Z0-9_]*(?:, else [A-Z0-9_]+)*)( .*)?$`).FindAllStringSubmatch(out.String(), -1)
	if len(variables) < 50 {
		t.Fatalf("only %d variables are listed:\n%s", len(variables), out.String())
	}
	for _, variable := range variables {
		if text := strings.TrimSpace(variable[2]); text == "" || text[0] == '(' {
			t.Errorf("the help says of %s only %q", variable[1], text)
		}
	}
}

func TestMistakesInTheVariablesOfAllPartsAreReportedAtOnce(t *testing.T) {
	source := env.New([]string{"DOORWARD_ARGON2_MEMORY=1", "DOORWARD_LOGIN_PAIR_WINDOW=soon", "DOORWARD_TRUSTED_HOPS=-1", "KAFKA_TLS=perhaps"})
	FromEnv(source)
	source.Load(new(run.Config))
	err := source.Err()
	if err == nil {
		t.Fatal("no mistake is found")
	}
	for _, want := range []string{"DOORWARD_ARGON2_MEMORY: 1 is less than 8", "DOORWARD_LOGIN_PAIR_WINDOW", "DOORWARD_TRUSTED_HOPS", "KAFKA_TLS"} {
		if strings.Count(err.Error(), want) != 1 {
			t.Errorf("the error names %s otherwise than once: %v", want, err)
		}
	}
}
