package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/doorward/doorward/deploy/e2e"
	"github.com/doorward/doorward/deploy/e2e/harness"
	"github.com/doorward/doorward/deploy/e2e/loadgen"
)

// TestMain makes the test's own binary the baseline when it is asked to be, as
// the program itself does.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == baselineCommand {
		main()
		return
	}
	os.Exit(m.Run())
}

func TestTheBaselineIsMeasuredAndStops(t *testing.T) {
	r := &run{dir: harness.TestFolder(t), options: options{accounts: 50}}
	err := r.startBaseline(t.Context())
	t.Cleanup(func() {
		for _, cleanup := range r.cleanups {
			if err := cleanup(context.WithoutCancel(t.Context())); err != nil {
				t.Error(err)
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	l := loadgen.Load{Workers: 2, WarmUp: 50 * time.Millisecond, Length: 2 * time.Second}
	for _, operation := range baselineOperations {
		o := send(t.Context(), l, r.baseline, operation.do)
		if o.Done() == 0 || len(o.Failures) > 0 {
			t.Errorf("%s: %d answers, failures %v: %v", operation.name, o.Done(), o.Failures, o.Example)
		}
		if _, postgres := o.usage.processes["postgres"]; runtime.GOOS == "linux" && (o.usage.machine == 0 || !postgres) {
			t.Errorf("%s: the processes used no processor: %+v", operation.name, o.usage)
		}
	}
	if mib, err := memory(r.baseline.processes); runtime.GOOS == "linux" && (err != nil || mib < 10) {
		t.Errorf("%g MiB: %v", mib, err)
	}
}

func TestAControlGroupHoldsWhatIsStartedInIt(t *testing.T) {
	group, err := newCPUGroup()
	if err != nil {
		t.Logf("control groups cannot be written here: %v", err)
		return
	}
	t.Cleanup(func() {
		if err := group.Remove(); err != nil {
			t.Error(err)
		}
	})
	command := append(group.Wrapper(), "/bin/sleep", "60")
	sleeper := exec.CommandContext(t.Context(), command[0], command[1:]...)
	if err := sleeper.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = sleeper.Process.Kill()
		_ = sleeper.Wait()
	}()
	err = e2e.AwaitFor(t.Context(), time.Minute, "the process to be in the group", func(context.Context) error {
		raw, err := os.ReadFile(group.Path("cgroup.procs"))
		members, want := strings.Fields(string(raw)), []string{fmt.Sprint(sleeper.Process.Pid)}
		if err == nil && !slices.Equal(members, want) {
			err = fmt.Errorf("in the group are %v, want %s", members, want)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if got < want*0.998 || got > want*1.002 {
		t.Errorf("%s is %g, want %g", what, got, want)
	}
}

func TestAMeasurementInWhichNothingSucceededIsAnError(t *testing.T) {
	o := &outcome{}
	o.Count("", 0, statusError{503, "busy"})
	if err := o.failed("get"); err == nil || !strings.Contains(err.Error(), "1 x 503") {
		t.Errorf("without a success the error is %v", err)
	}
	o.Count("", time.Millisecond, nil)
	if err := o.failed("get"); err != nil {
		t.Errorf("with a success the error is %v", err)
	}
}

func TestARatioComparesTheSameRounds(t *testing.T) {
	// The machine was fast in the second round, and the last one has no baseline.
	if got := ratios([]float64{10, 50, 30, 8}, []float64{100, 1000, 100, 0}); !slices.Equal(got, []float64{0.1, 0.05, 0.3}) {
		t.Errorf("the ratios are %v", got)
	}
	if got := ratios([]float64{1, 2}, []float64{0, 0}); got != nil {
		t.Errorf("the ratios to nothing are %v", got)
	}
}

func TestARowShowsTheMedianWithTheLowestAndTheHighest(t *testing.T) {
	for want, values := range map[string][]float64{
		"  ": nil, "3.00 3.00 3.00": {3}, "5.00 1.00 9.00": {9, 1, 5}, "2.50 1.00 4.00": {4, 1, 3, 2},
		"0.277 6.17e-05 31176": {0.2771, 0.0000617, 31176.4}, "104 31.2 200": {31.25, 104, 200},
	} {
		if got := strings.Join(medianAndRange(values), " "); got != want {
			t.Errorf("%v is shown as %q, want %q", values, got, want)
		}
	}
}

func TestOptions(t *testing.T) {
	read := func(args string) (options, error) { return readOptions(strings.Fields(args), io.Discard) }
	t.Run("short changes the defaults and not what is given", func(t *testing.T) {
		o, err := read("-short -rounds 7")
		if err != nil || o.rounds != 7 || o.accounts != 100 || o.duration != 400*time.Millisecond {
			t.Errorf("-short with 7 rounds is read as %+v, %v", o, err)
		}
	})
	t.Run("only measures what it names and what that is divided by", func(t *testing.T) {
		o, err := read("-only signed,refresh")
		if err != nil || !o.wants("signed") || !o.wants("get") || !o.wants("row") || !o.wants("pair") || o.wants("login", "starts") {
			t.Errorf("-only is read as %+v, %v", o, err)
		}
	})
	for _, refused := range []string{
		"-connections 65", "-connections 0", "-only walk", "-duration 1h", "-rounds 0", "-accounts 0", "-large 10", "-people 0", "fast",
	} {
		t.Run("refuses "+refused, func(t *testing.T) {
			if o, err := read(refused); err == nil {
				t.Errorf("the refused options are read as %+v", o)
			}
		})
	}
}

func TestTheReportIsOneTableWithWhatFailedAndWhatWasSkipped(t *testing.T) {
	r := newReport(options{rounds: 3})
	w := r.add("operations", "get", "/s", "", 500, 400, 600)
	w.reference = &row{name: "row", values: []float64{1000, 500, 1000}}
	w.sum.Count("", 2*time.Millisecond, nil)
	w.sum.Count("", 0, statusError{429, "too many requests"})
	w.sum.usage.processes = map[string]time.Duration{"gateway": 3 * time.Millisecond, "postgres": time.Millisecond}
	r.skip("quota", io.EOF)
	var out bytes.Buffer
	r.print(&out)
	for _, want := range []string{"OPERATIONS", "500", "400", "600", "row", "0.600", "0.500", "0.800", "2.00", "PostgreSQL) 1",
		"1 x 429, for example too many requests", "get: gateway 3000, postgres 1000", "DOORWARD_ADDRESS_RATE=0", "skipped quota: EOF"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in the report:\n%s", want, out.String())
		}
	}
}

// peerDouble answers one client as Ory Hydra does.
func peerDouble(w http.ResponseWriter, r *http.Request) {
	id, secret, _ := r.BasicAuth()
	isClient, grant := id == "a" && secret == "b", r.FormValue("grant_type")
	cookies := r.Header.Get("Cookie")
	redirect := func(status int, to, cookie string) {
		http.SetCookie(w, &http.Cookie{Name: "other", Value: "o"})
		http.SetCookie(w, &http.Cookie{Name: cookie, Value: "1"})
		http.Redirect(w, r, to, status)
	}
	accept := func(step string) {
		_, _ = fmt.Fprintf(w, `{"redirect_to":"http://%s/oauth2/auth?%s_verifier=1"}`, r.Host, step)
	}
	switch path := r.URL.Path; {
	case path == "/oauth2/auth" && r.FormValue("login_verifier") == "" && r.FormValue("consent_verifier") == "":
		redirect(http.StatusFound, "https://login.test/?login_challenge=l", "login")
	case path == "/admin/oauth2/auth/requests/login/accept" && r.FormValue("login_challenge") == "l":
		accept("login")
	case path == "/oauth2/auth" && r.FormValue("login_verifier") != "" && strings.Contains(cookies, "login=1"):
		redirect(http.StatusFound, "https://login.test/?consent_challenge=c", "consent")
	case path == "/admin/oauth2/auth/requests/consent/accept" && r.FormValue("consent_challenge") == "c":
		accept("consent")
	case path == "/oauth2/auth" && strings.Contains(cookies, "login=1") && strings.Contains(cookies, "consent=1"):
		redirect(http.StatusSeeOther, callback+"?code=code", "session")
	case path == "/oauth2/token" && isClient && (grant == "client_credentials" ||
		grant == "authorization_code" && r.FormValue("code") == "code" && r.FormValue("code_verifier") == codeVerifier ||
		grant == "refresh_token" && r.FormValue("refresh_token") == "y"):
		_, _ = io.WriteString(w, `{"access_token":"x","refresh_token":"y","token_type":"bearer"}`)
	case path == "/admin/oauth2/introspect" && r.FormValue("token") == "x":
		_, _ = io.WriteString(w, `{"active":true}`)
	default:
		w.WriteHeader(http.StatusUnauthorized)
	}
}

func TestAPeerIsMeasuredByTheSameClient(t *testing.T) {
	double := httptest.NewServer(http.HandlerFunc(peerDouble))
	t.Cleanup(double.Close)
	file := filepath.Join(t.TempDir(), "peer.json")
	content := fmt.Sprintf(`{"name":"double","publicUrl":%q,"adminUrl":%q,"clientId":"a","clientSecret":"b"}`, double.URL+"/", double.URL)
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := openPeer(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	for _, operation := range peerOperations {
		l := loadgen.Load{Workers: 2, Length: 100 * time.Millisecond}
		if operation.prepare != nil {
			operation.prepare(s, l)
		}
		o := send(t.Context(), l, s, operation.do)
		if o.Done() == 0 || len(o.Failures) > 0 && operation.prepare == nil { // codes may all be taken
			t.Errorf("%s: %d answers, failures %v: %v", operation.name, o.Done(), o.Failures, o.Example)
		}
	}
}

func TestEachMeasurementIsMadeOnceInARound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var order []string
		noted := func(name string, length time.Duration) operation {
			return operation{name: name, do: func(*system, *connection, uint64) error {
				order = append(order, name)
				time.Sleep(length)
				return nil
			}}
		}
		r := &run{options: options{connections: 1, duration: time.Second}, report: &report{}}
		quick := r.add("section", &system{}, noted("quick", 10*time.Millisecond), loadgen.Load{})
		slow := r.add("section", &system{}, noted("slow", 20*time.Millisecond), loadgen.Load{})
		if err := r.rounds(t.Context(), 2); err != nil || len(r.report.rows) != 2 {
			t.Fatalf("two rounds made the rows %v, %v", r.report.rows, err)
		}
		near(t, "the rate", median(slow.values), 50)
		near(t, "the ratio", median(ratios(slow.values, quick.values)), 0.5)
		if want := []string{"quick", "slow", "quick"}; !slices.Equal(slices.Compact(order), want) { // the second round begins with slow
			t.Errorf("the order is %v, want %v", order, want)
		}
	})
}
