package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestOptions(t *testing.T) {
	read := func(args ...string) (options, error) { return readOptions(args, io.Discard) }
	t.Run("short changes the defaults and not what is given", func(t *testing.T) {
		o, err := read("-short", "-rounds", "7")
		if err != nil || o.Rounds != 7 || o.Accounts != 100 || o.Duration != 400*time.Millisecond {
			t.Errorf("%+v, %v", o, err)
		}
	})
	t.Run("only measures what it names", func(t *testing.T) {
		o, err := read("-only", "get,refresh")
		if err != nil || !o.wants("get") || o.wants("login", "starts") {
			t.Errorf("%+v, %v", o, err)
		}
	})
	t.Run("an operation brings what it is divided by", func(t *testing.T) {
		o, err := read("-only", "signed")
		if err != nil || !o.wants("get") || !o.wants("row") || o.wants("login") {
			t.Errorf("%+v, %v", o, err)
		}
	})
	for _, refused := range []string{
		"-connections 65", "-connections 0", "-only walk", "-duration 1h", "-rounds 0", "-accounts 0", "-large 10",
		"-people 0", "fast",
	} {
		t.Run("refuses "+refused, func(t *testing.T) {
			if o, err := read(strings.Fields(refused)...); err == nil {
				t.Errorf("%+v", o)
			}
		})
	}
}

func TestNumbersHaveThreeDigits(t *testing.T) {
	for n, want := range map[float64]string{
		0: "", 0.0000617: "6.17e-05", 0.2771: "0.28", 1: "1.00", 31.25: "31.2", 104: "104", 31176.4: "31176",
	} {
		if got := number(n); got != want {
			t.Errorf("%g is shown as %s, want %s", n, got, want)
		}
	}
}

func TestTheReportIsOneTableWithWhatFailedAndWhatWasSkipped(t *testing.T) {
	r := newReport(options{Rounds: 3})
	w := r.add("operations", "get", "/s", "", 500, 400, 600)
	w.over = &row{name: "row", values: []float64{1000, 500, 1000}}
	w.sum.count(2*time.Millisecond, nil)
	w.sum.count(0, refusal{429, "too many requests"})
	w.sum.usage.servers = map[string]time.Duration{"gateway": 3 * time.Millisecond, "postgres": time.Millisecond}
	r.skip("quota", "control groups cannot be written here")
	var out bytes.Buffer
	r.print(&out)
	for _, want := range []string{"OPERATIONS", "500", "400", "600", "row", "0.60", "0.50", "0.80", "2.00",
		"1 x 429, for example too many requests", "get: gateway 3000, postgres 1000", "DOORWARD_ADDRESS_RATE=0",
		"skipped quota: control groups"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in the report:\n%s", want, out.String())
		}
	}
}

func TestAPeerIsMeasuredByTheSameClient(t *testing.T) {
	asked := map[string]int{}
	var mu sync.Mutex
	double := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		asked[r.Method+" "+r.URL.Path]++
		id, secret, _ := r.BasicAuth()
		switch {
		case r.URL.Path == "/oauth2/token" && r.FormValue("grant_type") == "client_credentials" && id == "a" && secret == "b":
			_, _ = io.WriteString(w, `{"access_token":"x","token_type":"bearer"}`)
		case r.URL.Path == "/admin/oauth2/introspect" && r.FormValue("token") == "x":
			_, _ = io.WriteString(w, `{"active":true}`)
		default:
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	t.Cleanup(double.Close)
	file := filepath.Join(t.TempDir(), "peer.json")
	content := fmt.Sprintf(`{"name":"double","publicUrl":%q,"adminUrl":%q,"clientId":"a","clientSecret":"b"}`, double.URL+"/", double.URL)
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := openPeer(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, operation := range peerOperations {
		o := load{connections: 2, length: 100 * time.Millisecond}.run(t.Context(), s, operation.do)
		if o.done() == 0 || len(o.failures) > 0 {
			t.Errorf("%s: %d answers, failures %v: %v", operation.name, o.done(), o.failures, o.example)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if len(asked) != 2 || asked["POST /oauth2/token"] == 0 || asked["POST /admin/oauth2/introspect"] == 0 {
		t.Errorf("it was asked for %v", asked)
	}
}

func TestEachTurnIsComparedWithAnotherOfItsRound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var order []string
		pause := func(name string, length time.Duration) action {
			return func(*site, *connection, uint64) error {
				if len(order) == 0 || order[len(order)-1] != name {
					order = append(order, name)
				}
				time.Sleep(length)
				return nil
			}
		}
		l := load{connections: 1, length: time.Second}
		quick := turn{section: "section", operation: operation{name: "quick", do: pause("quick", 10*time.Millisecond)}, load: l, site: &site{}}
		slow := turn{section: "section", load: l, site: &site{}, operation: operation{
			name: "slow", over: "quick", do: pause("slow", 20*time.Millisecond)}}
		r := &run{report: &report{}}
		if err := r.rounds(t.Context(), 2, []turn{quick, slow}); err != nil || len(r.report.rows) != 2 {
			t.Fatalf("%v, %v", r.report.rows, err)
		}
		quickly, slowly := r.report.rows[0], r.report.rows[1]
		near(t, "the rate", median(slowly.values), 50)
		near(t, "the ratio", median(ratios(slowly.values, quickly.values)), 0.5)
		if slowly.over != quickly {
			t.Errorf("it is compared with %v", slowly.over)
		}
		if want := []string{"quick", "slow", "quick"}; !slices.Equal(order, want) { // the second round begins with slow
			t.Errorf("the order is %v, want %v", order, want)
		}
	})
}
