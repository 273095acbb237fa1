// Package monitoring_test scrapes a standalone with Prometheus while it is used and
// evaluates every query of the dashboards, alerts and runbooks on what was scraped.
package monitoring_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward/deploy/e2e"
	"github.com/doorward/doorward/deploy/e2e/harness"
)

// dataLimit bounds the wait for each query to have an answer.
const dataLimit = 90 * time.Second

// inFaultsOnly are selectors that have series only while there is a fault, with that
// fault. Each other selector of a dashboard or an alert finds data
// while the product is used.
var inFaultsOnly = map[string]string{
	`{status=~"5.."}`:                          "a service fails, or PostgreSQL is away",
	`{result=~"failed|postponed"}`:             "the mail server is away, or refuses mails",
	`{result=~"failed|broken|lost|postponed"}`: "the SMS provider is away, or refuses text messages",
	`{result="application_limit"}`:             "an application logs its users in without their addresses",
	`{route=~"/v1/applications/:id/loginAttempts|/v1/applications/:id/oauth/.*|/oidc/:id/.*|//site/.*",status=~"5.."}`: "logins fail",
}

func TestEveryQueryOfDashboardsAlertsAndRunbooksFindsData(t *testing.T) {
	root, err := harness.Root()
	if err != nil {
		t.Fatal(err)
	}
	ops, bin, deployment, client := startProduct(t)
	prometheus := startPrometheus(t, root, ops)
	use := newUsage(t, client)
	queries := slices.Concat(dashboardQueries(t, root), ruleQueries(t, prometheus), runbookQueries(t, root))
	var missing []string
	for began := time.Now(); ; {
		use() // so that a rate is not zero over zero
		missing = nil
		for _, query := range queries {
			if n := results(t, prometheus, "query", url.Values{"query": {query}}); n == 0 {
				missing = append(missing, query)
			}
		}
		if len(missing) == 0 {
			break
		}
		if time.Since(began) > dataLimit {
			t.Fatalf("%d of %d queries find nothing:\n%s", len(missing), len(queries), strings.Join(missing, "\n"))
		}
	}
	t.Logf("%d queries find data", len(queries))
	for _, histogram := range []string{"gateway_request", "directory_request", "application_request", "oauth_request", "mfa_request",
		"notification_request", "idsite_request"} {
		exemplars := results(t, prometheus, "query_exemplars", url.Values{
			"query": {"doorward_" + histogram + "_duration_seconds_bucket"},
			"start": {fmt.Sprint(time.Now().Add(-time.Hour).Unix())}, "end": {fmt.Sprint(time.Now().Unix() + 1)},
		})
		if exemplars == 0 {
			t.Errorf("the histogram of doorward_%s_duration_seconds has no exemplar", histogram)
		}
	}
	runRunbooks(t, root, bin, prometheus, deployment)
}

// newUsage prepares a tenant and returns a function that uses every part of the product once.
func newUsage(t *testing.T, client *e2e.Client) func() {
	t.Helper()
	fixture := client.NewVerificationFixture(t)
	account := client.Register(t, fixture.Application.Link(t, "accounts"))
	client.AwaitMail(t, account.Text("email"))
	ordinary := client.NewFixture(t)
	account = client.Register(t, ordinary.Application.Link(t, "accounts"))
	var factor e2e.Object
	uses := 0
	guessed := client.Register(t, ordinary.Application.Link(t, "accounts")).Text("email")
	for range 21 { // one more than DOORWARD_LOGIN_PAIR_LIMIT
		if _, err := client.Do(t.Context(), e2e.Login(ordinary.Application, guessed, "wrong"+e2e.Unique(""))); err != nil {
			t.Fatal(err)
		}
	}
	return func() {
		if uses++; uses%10 == 1 { // a number receives 20 messages an hour
			number := fmt.Sprintf("+1267555%04d", uses)
			factor = client.Create(t, account.Link(t, "factors"), e2e.Object{"type": "SMS", "phone": e2e.Object{"number": number}})
			client.Register(t, fixture.Application.Link(t, "accounts")) // which sends a mail
		}
		client.Want(t, http.StatusOK, e2e.Login(ordinary.Application, account.Text("email"), e2e.Password))
		client.Refused(t, http.StatusBadRequest, 7100, e2e.Login(ordinary.Application, account.Text("email"), "wrong"+e2e.Unique("")))
		if _, err := client.Do(t.Context(), e2e.Login(ordinary.Application, guessed, e2e.Password)); err != nil {
			t.Fatal(err)
		}
		client.Token(t, ordinary.Application.Href(), url.Values{
			"grant_type": {"password"}, "username": {account.Text("email")}, "password": {e2e.Password},
		})
		client.Create(t, factor.Link(t, "challenges"), e2e.Object{})
		client.Get(t, account.Link(t, "factors"))
		client.Get(t, client.Tenant(t).Link(t, "idSites"))
		client.Get(t, client.Tenant(t).Link(t, "smtpServers"))
		client.With("unknown", "key").Want(t, http.StatusUnauthorized, e2e.Request{Method: http.MethodGet, URL: account.Href()})
	}
}

// startProduct returns the address of the private port, and a client.
func startProduct(t *testing.T) (ops, bin string, deployment *harness.Standalone, client *e2e.Client) {
	t.Helper()
	dir, remove, err := harness.TempFolder()
	if err != nil {
		t.Fatal(err)
	}
	if bin, err = harness.Build(t.Context(), dir, harness.StandalonePackages...); err != nil {
		t.Fatal(err)
	}
	ops = freeAddress(t)
	deployment, err = harness.StartStandalone(t.Context(), harness.Config{Dir: filepath.Join(dir, "deployment"), Bin: bin, Env: []string{
		"DOORWARD_OPS_LISTEN=" + ops, "DOORWARD_LOG_LEVEL=error",
		"OTEL_EXPORTER_OTLP_ENDPOINT=http://" + freeAddress(t), // nobody listens there: spans are recorded, and dropped
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			deployment.Logs(t.Output())
		}
		if err := errors.Join(deployment.Stop(context.WithoutCancel(t.Context())), remove()); err != nil {
			t.Error(err)
		}
	})
	if client, err = e2e.OpenClient(deployment.KeyFile()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.HTTP.CloseIdleConnections)
	return ops, bin, deployment, client
}

// startPrometheus runs Prometheus with the rules of the repository and returns
// its address.
func startPrometheus(t *testing.T, root, target string) (address string) {
	t.Helper()
	dir := t.TempDir()
	config := fmt.Sprintf(`
global: { scrape_interval: 1s, evaluation_interval: 1s }
rule_files: [%s]
scrape_configs:
  - job_name: doorward
    static_configs: [{ targets: [%q] }]
`, filepath.Join(root, "deploy/helm/doorward/alerts.yml"), target)
	if err := os.WriteFile(filepath.Join(dir, "prometheus.yml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	listen := freeAddress(t)
	process := exec.CommandContext(context.WithoutCancel(t.Context()), "prometheus", "--config.file="+filepath.Join(dir, "prometheus.yml"),
		"--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+listen, "--enable-feature=exemplar-storage", "--log.level=error")
	process.Stderr = t.Output()
	if err := process.Start(); err != nil {
		t.Fatalf("start Prometheus: %v (install it with deploy/setup/setup.sh prometheus)", err)
	}
	t.Cleanup(func() {
		_ = process.Process.Kill()
		_ = process.Wait() // which reports the kill
	})
	address = "http://" + listen
	await(t, "Prometheus", func(ctx context.Context) error {
		answer, err := http.Get(address + "/-/ready")
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			return errors.New(answer.Status)
		}
		return nil
	})
	return address
}

func await(t *testing.T, what string, probe func(context.Context) error) {
	t.Helper()
	if err := e2e.AwaitFor(t.Context(), dataLimit, what, probe); err != nil {
		t.Fatal(err)
	}
}

func freeAddress(t *testing.T) string {
	t.Helper()
	address := harness.FreeAddress()
	return address
}

// ofClusters begins the series of kube-state-metrics, which only a cluster has.
const ofClusters = "kube_"

// Both replace the variables of a dashboard: by what all releases have, or the labels with them by none.
var (
	anyRelease     = strings.NewReplacer("$__rate_interval", "1m", "$namespace", ".*", "$release", ".*")
	withoutRelease = strings.NewReplacer(`{namespace=~"$namespace",release=~"$release"}`, "",
		`{namespace=~"$namespace",release=~"$release",`, "{")
)

// dashboardQueries returns the PromQL of all panels, and their selectors.
func dashboardQueries(t *testing.T, root string) (queries []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, "deploy/grafana/*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no dashboards, %v", err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var dashboard struct {
			Panels []struct {
				Targets []struct {
					Expr       string
					Datasource struct{ Type string }
				}
			}
		}
		if err := json.Unmarshal(content, &dashboard); err != nil {
			t.Fatal(err)
		}
		for _, panel := range dashboard.Panels {
			for _, target := range panel.Targets {
				if target.Datasource.Type != "prometheus" || strings.Contains(target.Expr, ofClusters) {
					continue
				}
				queries = append(queries, anyRelease.Replace(target.Expr))
				queries = append(queries, selectors(withoutRelease.Replace(target.Expr))...)
			}
		}
	}
	slices.Sort(queries)
	return slices.Compact(queries)
}

var selector = regexp.MustCompile(`\b(?:doorward|process|go)_\w+(\{[^}]*\})?|\bdoorward:\w+:\w+|\bup\b(\{[^}]*\})?`)

// selectors returns the parts of a query that name series: "or vector(0)" hides that
// they find none.
func selectors(query string) (found []string) {
	for _, match := range selector.FindAllStringSubmatch(query, -1) {
		if inFaultsOnly[match[1]] == "" {
			found = append(found, match[0])
		}
	}
	return found
}

var comparison = regexp.MustCompile(` (>=|<=|==|!=|>|<) `)

// ruleQueries returns what recording rules and alerts ask for, and their selectors.
// The comparisons of an alert return 0 instead of nothing, so that an alert that
// does not fire finds data too.
func ruleQueries(t *testing.T, prometheus string) (queries []string) {
	t.Helper()
	var answer struct {
		Data struct {
			Groups []struct {
				Rules []struct{ Type, Query string }
			}
		}
	}
	get(t, prometheus+"/api/v1/rules", &answer)
	alerts := 0
	for _, group := range answer.Data.Groups {
		for _, rule := range group.Rules {
			query := rule.Query
			if strings.Contains(query, ofClusters) {
				alerts++
				continue
			}
			if rule.Type == "alerting" {
				alerts++
				if query = comparison.ReplaceAllString(query, " $1 bool "); query == rule.Query {
					t.Errorf("an alert compares nothing: %s", query)
				}
			}
			queries = append(append(queries, query), selectors(query)...)
		}
	}
	if alerts < 10 {
		t.Fatalf("Prometheus has read %d alerts", alerts)
	}
	slices.Sort(queries)
	return slices.Compact(queries)
}

var queryCommand = regexp.MustCompile(`(?m)^promtool query instant \S+ (?:'([^']+)'|(\S+))$`)

// runbookQueries returns what the commands of the runbooks ask for, without the
// selectors that find something in faults only.
func runbookQueries(t *testing.T, root string) (queries []string) {
	t.Helper()
	pages, err := filepath.Glob(filepath.Join(root, "docs/runbooks/*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range pages {
		content, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range queryCommand.FindAllStringSubmatch(string(content), -1) {
			query := found[1] + found[2]
			for faults := range inFaultsOnly {
				query = strings.ReplaceAll(query, faults, "")
			}
			queries = append(queries, query)
		}
	}
	if len(queries) < 10 {
		t.Fatalf("the runbooks have %d queries", len(queries))
	}
	return queries
}

// results returns how many series a query has that are numbers.
func results(t *testing.T, prometheus, kind string, form url.Values) (n int) {
	t.Helper()
	var answer struct {
		Status, Error string
		Data          json.RawMessage
	}
	get(t, prometheus+"/api/v1/"+kind+"?"+form.Encode(), &answer)
	if answer.Status != "success" {
		t.Fatalf("%s: %s", form.Get("query"), answer.Error)
	}
	if kind == "query_exemplars" {
		var series []any
		if err := json.Unmarshal(answer.Data, &series); err != nil {
			t.Fatal(err)
		}
		return len(series)
	}
	var vector struct{ Result []struct{ Value [2]any } }
	if err := json.Unmarshal(answer.Data, &vector); err != nil {
		t.Fatal(err)
	}
	for _, series := range vector.Result {
		if series.Value[1] != "NaN" {
			n++
		}
	}
	return n
}

func get(t *testing.T, address string, into any) {
	t.Helper()
	answer, err := http.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if err := json.NewDecoder(answer.Body).Decode(into); err != nil {
		t.Fatal(err)
	}
}
