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
	"testing"
	"testing/synctest"
	"time"
)

func TestOptions(t *testing.T) {
	read := func(args string) (options, error) { return readOptions(strings.Fields(args), io.Discard) }
	t.Run("short changes the defaults and not what is given", func(t *testing.T) {
		o, err := read("-short -rounds 7")
		if err != nil || o.rounds != 7 || o.accounts != 100 || o.duration != 400*time.Millisecond {
			t.Errorf("%+v, %v", o, err)
		}
	})
	t.Run("only measures what it names and what that is divided by", func(t *testing.T) {
		o, err := read("-only signed,refresh")
		if err != nil || !o.wants("signed") || !o.wants("get") || !o.wants("row") || !o.wants("pair") || o.wants("login", "starts") {
			t.Errorf("%+v, %v", o, err)
		}
	})
	for _, refused := range []string{
		"-connections 65", "-connections 0", "-only walk", "-duration 1h", "-rounds 0", "-accounts 0", "-large 10", "-people 0", "fast",
	} {
		t.Run("refuses "+refused, func(t *testing.T) {
			if o, err := read(refused); err == nil {
				t.Errorf("%+v", o)
			}
		})
	}
}

func TestTheReportIsOneTableWithWhatFailedAndWhatWasSkipped(t *testing.T) {
	r := newReport(options{rounds: 3})
	w := r.add("operations", "get", "/s", "", 500, 400, 600)
	w.over = &row{name: "row", values: []float64{1000, 500, 1000}}
	w.sum.count(2*time.Millisecond, nil)
	w.sum.count(0, refusal{429, "too many requests"})
	w.sum.usage.servers = map[string]time.Duration{"gateway": 3 * time.Millisecond, "postgres": time.Millisecond}
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

// peerDouble answers one client as an OAuth server does.
func peerDouble(w http.ResponseWriter, r *http.Request) {
	id, secret, _ := r.BasicAuth()
	switch {
	case r.URL.Path == "/oauth2/token" && r.FormValue("grant_type") == "client_credentials" && id == "a" && secret == "b":
		_, _ = io.WriteString(w, `{"access_token":"x","token_type":"bearer"}`)
	case r.URL.Path == "/admin/oauth2/introspect" && r.FormValue("token") == "x":
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
}

func TestEachTurnIsMeasuredOnceInARound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var order []string
		noted := func(name string, length time.Duration) operation {
			return operation{name: name, do: func(*site, *connection, uint64) error {
				order = append(order, name)
				time.Sleep(length)
				return nil
			}}
		}
		r := &run{options: options{connections: 1, duration: time.Second}, report: &report{}}
		quick := r.turn("section", &site{}, noted("quick", 10*time.Millisecond), 0)
		slow := r.turn("section", &site{}, noted("slow", 20*time.Millisecond), 0)
		if err := r.rounds(t.Context(), 2); err != nil || len(r.report.rows) != 2 {
			t.Fatalf("%v, %v", r.report.rows, err)
		}
		near(t, "the rate", median(slow.values), 50)
		near(t, "the ratio", median(ratios(slow.values, quick.values)), 0.5)
		if want := []string{"quick", "slow", "quick"}; !slices.Equal(slices.Compact(order), want) { // the second round begins with slow
			t.Errorf("the order is %v, want %v", order, want)
		}
	})
}
