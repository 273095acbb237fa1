package cells

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/id"
)

// operator is the /operator/v1 of a cell, as docs/operations.md describes it.
type operator struct {
	*httptest.Server

	mu          sync.Mutex
	tenants     map[string]tenant // by a name, such as id=…
	recorded    []event
	lookUps     map[string]int // by a name
	down        bool           // answers 502
	busy, most  int            // look-ups that run now, and the most that ran at a time
	during      func()         // called in a look-up
	eventsAsked int
}

const secret = "0123456789abcdef0123456789abcdef"

func newOperator(t *testing.T) *operator {
	t.Helper()
	o := &operator{tenants: map[string]tenant{}, lookUps: map[string]int{}}
	o.Server = httptest.NewServer(http.HandlerFunc(o.serve))
	t.Cleanup(o.Close)
	return o
}

func (o *operator) serve(w http.ResponseWriter, r *http.Request) {
	name, password, _ := r.BasicAuth()
	o.mu.Lock()
	down := o.down
	o.mu.Unlock()
	switch {
	case down:
		w.WriteHeader(http.StatusBadGateway)
	case name != "cells" || password != secret:
		w.WriteHeader(http.StatusUnauthorized)
	case r.URL.Path == "/operator/v1/lookup":
		o.serveLookUp(w, r)
	case r.URL.Path == "/operator/v1/events":
		o.serveEvents(w, r)
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

func (o *operator) serveLookUp(w http.ResponseWriter, r *http.Request) {
	o.mu.Lock()
	found, ok := o.tenants[r.URL.RawQuery]
	o.lookUps[r.URL.RawQuery]++
	o.busy++
	o.most = max(o.most, o.busy)
	during := o.during
	o.mu.Unlock()
	if during != nil {
		during()
	}
	o.mu.Lock()
	o.busy--
	o.mu.Unlock()
	if !ok {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	_ = json.NewEncoder(w).Encode(found)
}

func (o *operator) serveEvents(w http.ResponseWriter, r *http.Request) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.eventsAsked++
	limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
	page := []event{}
	after, ok := r.URL.Query()["after"]
	if !ok { // the newest first
		for i := len(o.recorded) - 1; i >= 0 && len(page) < limit; i-- {
			page = append(page, o.recorded[i])
		}
	} else {
		at := -1
		for i, e := range o.recorded {
			if e.ID == after[0] {
				at = i
			}
		}
		for _, e := range o.recorded[at+1:] {
			if len(page) < limit {
				page = append(page, e)
			}
		}
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"items": page})
}

// has makes a name one of a tenant.
func (o *operator) has(name, tenantID, status string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.tenants[name] = tenant{ID: tenantID, Key: "key-of-" + tenantID, Status: status}
}

// record adds an event about a tenant; an empty one is about none.
func (o *operator) record(tenantID string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	e := event{ID: fmt.Sprintf("%022d", len(o.recorded)+100)}
	if tenantID != "" {
		e.Tenant = &tenantID
	}
	o.recorded = append(o.recorded, e)
}

func (o *operator) setDown(down bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.down = down
}

func (o *operator) asked(name string) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.lookUps[name]
}

// deployment is two cells and their directory, on a clock.
type deployment struct {
	*Directory
	t    *testing.T
	a, b *operator

	mu  sync.Mutex
	now time.Time
}

func newDeployment(t *testing.T) *deployment {
	t.Helper()
	d := &deployment{t: t, a: newOperator(t), b: newOperator(t), now: time.Unix(1_800_000_000, 0)}
	config := Config{Default: "a"}
	for name, o := range map[string]*operator{"a": d.a, "b": d.b} {
		config.Cells = append(config.Cells, CellConfig{
			Name: name, Address: "cell-" + name + ":443", Operator: o.URL, keyName: "cells", keySecret: secret,
		})
	}
	if config.Cells[0].Name != "a" {
		config.Cells[0], config.Cells[1] = config.Cells[1], config.Cells[0]
	}
	d.Directory = New(config, func() time.Time {
		d.mu.Lock()
		defer d.mu.Unlock()
		return d.now
	})
	d.polls(1)
	return d
}

// polls is so many polls of each cell.
func (d *deployment) polls(times int) {
	for range times {
		for _, c := range d.cells {
			d.poll(d.t.Context(), c)
		}
	}
}

func (d *deployment) wait(time time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.now = d.now.Add(time)
}

// ask asks about a request for a path, as a proxy does.
func (d *deployment) ask(path string) *httptest.ResponseRecorder {
	d.t.Helper()
	r := httptest.NewRequestWithContext(d.t.Context(), http.MethodGet, "http://127.0.0.1:9080/", nil)
	r.Header.Set("X-Forwarded-Host", "localhost:8000") // that of no tenant
	r.Header.Set("X-Forwarded-Uri", path)
	w := httptest.NewRecorder()
	d.ServeHTTP(w, r)
	return w
}

// wantCell asks about a path and expects a cell, or 503 where that is empty.
func (d *deployment) wantCell(path, cell string) {
	d.t.Helper()
	w := d.ask(path)
	if cell == "" {
		if w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") != "5" || w.Header().Get(CellHeader) != "" ||
			!strings.Contains(w.Body.String(), `"status":503`) {
			d.t.Errorf("a request for %s is answered with %d %v %s, want 503 with Retry-After", path, w.Code, w.Header(), w.Body)
		}
		return
	}
	if w.Code != http.StatusOK || w.Header().Get(CellHeader) != cell ||
		w.Header().Get(AddressHeader) != "cell-"+cell+":443" {
		d.t.Errorf("a request for %s is answered with %d %v %s, want the cell %s", path, w.Code, w.Header(), w.Body, cell)
	}
}

// newID returns an id, with the path of a resource that has it.
func newID() (text, path string) {
	text = id.New(time.Unix(1_800_000_000, 0)).String()
	return text, "/v1/accounts/" + text
}

func TestANameIsAskedForOnceInAnHour(t *testing.T) {
	t.Parallel()
	d := newDeployment(t)
	account, path := newID()
	d.b.has("id="+account, "t1", "ENABLED")
	for range 5 {
		d.wantCell(path, "b")
		d.wait(11 * time.Minute)
	}
	if a, b := d.a.asked("id="+account), d.b.asked("id="+account); a != 1 || b != 1 {
		t.Errorf("the cells were asked %d and %d times within an hour, want once each", a, b)
	}
	d.wait(11 * time.Minute)
	d.wantCell(path, "b")
	if b := d.b.asked("id=" + account); b != 2 {
		t.Errorf("the cell was asked %d times in more than an hour, want twice", b)
	}
}

func TestAnEventDropsTheAnswersAboutItsTenantAlone(t *testing.T) {
	t.Parallel()
	d := newDeployment(t)
	moved, movedPath := newID()
	other, otherPath := newID()
	d.a.has("id="+moved, "t1", "ENABLED")
	d.a.has("id="+other, "t2", "ENABLED")
	d.wantCell(movedPath, "a")
	d.wantCell(otherPath, "a")

	d.a.has("id="+moved, "t1", "SUSPENDED")
	d.b.has("id="+moved, "t1", "ENABLED")
	d.wantCell(movedPath, "a")
	d.b.record("t1")
	d.polls(1)
	d.wantCell(movedPath, "b")
	d.wantCell(otherPath, "a")
	if asked := d.a.asked("id=" + other); asked != 1 {
		t.Errorf("another tenant was asked for %d times, want once", asked)
	}
	d.a.record("key-of-t2") // an event that names its tenant by its key
	d.polls(1)
	d.wantCell(otherPath, "a")
	if asked := d.a.asked("id=" + other); asked != 2 {
		t.Errorf("a tenant was asked for %d times after an event with its key, want twice", asked)
	}
	d.a.record("") // a restore
	d.polls(1)
	d.wantCell(otherPath, "a")
	if asked := d.a.asked("id=" + other); asked != 3 {
		t.Errorf("a tenant was asked for %d times after an event about no tenant, want three times", asked)
	}
}

func TestMoreEventsThanAPageHas(t *testing.T) {
	t.Parallel()
	d := newDeployment(t)
	account, path := newID()
	d.a.has("id="+account, "t1", "ENABLED")
	d.wantCell(path, "a")
	for i := range 2*eventsPage + 1 {
		d.a.record("other" + strconv.Itoa(i))
	}
	d.a.record("t1")
	d.polls(1)
	d.wantCell(path, "a")
	if asked := d.a.asked("id=" + account); asked != 2 {
		t.Errorf("the tenant of the last of many events was asked for %d times, want twice", asked)
	}
}

func TestAnAnswerFromBeforeAnEventIsNotKept(t *testing.T) {
	t.Parallel()
	d := newDeployment(t)
	account, path := newID()
	d.a.has("id="+account, "t1", "ENABLED")
	var once sync.Once
	d.a.during = func() { // the tenant moves while it is looked up
		once.Do(func() {
			d.a.has("id="+account, "t1", "SUSPENDED")
			d.b.has("id="+account, "t1", "ENABLED")
			d.b.record("t1")
			d.polls(1)
		})
	}
	d.ask(path)
	d.wantCell(path, "b")
}

func TestAnEnabledTenantWins(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ inA, inB, want string }{
		{"SUSPENDED", "ENABLED", "b"},
		{"ENABLED", "SUSPENDED", "a"},
		{"DELETING", "SUSPENDED", "b"},
		{"ENABLED", "ENABLED", "a"}, // the first of the file
		{"SUSPENDED", "", "a"},
		{"", "DELETING", "b"},
		{"", "", "a"}, // the default
	} {
		d := newDeployment(t)
		account, path := newID()
		for status, o := range map[string]*operator{"A" + c.inA: d.a, "B" + c.inB: d.b} {
			if len(status) > 1 {
				o.has("id="+account, "t1", status[1:])
			}
		}
		d.wantCell(path, c.want)
	}
}

func TestANameThatNoCellHasIsKeptBriefly(t *testing.T) {
	t.Parallel()
	d := newDeployment(t)
	account, path := newID()
	for range 3 {
		d.wantCell(path, "a")
	}
	if asked := d.b.asked("id=" + account); asked != 1 {
		t.Errorf("a name that no cell has was asked for %d times, want once", asked)
	}
	d.b.has("id="+account, "t1", "ENABLED")
	d.wait(keepAbsent)
	d.wantCell(path, "b")

	created, createdPath := newID()
	d.wantCell(createdPath, "a")
	d.b.has("id="+created, "t2", "ENABLED")
	d.b.record("t2")
	d.polls(1)
	d.wantCell(createdPath, "b")
}

func TestALostCellTakesNobodyElseWithIt(t *testing.T) {
	t.Parallel()
	d := newDeployment(t)
	inA, pathA := newID()
	inB, pathB := newID()
	alsoA, alsoPathA := newID()
	_, unknownPath := newID()
	suspended, suspendedPath := newID()
	d.a.has("id="+inA, "t1", "ENABLED")
	d.a.has("id="+alsoA, "t1", "ENABLED")
	d.a.has("id="+suspended, "t3", "SUSPENDED")
	d.b.has("id="+inB, "t2", "ENABLED")
	d.wantCell(pathA, "a")
	d.wantCell(pathB, "b")

	d.b.setDown(true)
	d.wantCell(pathB, "b")      // kept: nothing is known yet
	d.wantCell(unknownPath, "") // it may be in b
	d.polls(lostAfter)
	d.wantCell(pathA, "a")
	d.wantCell(alsoPathA, "a")
	d.wantCell(pathB, "")
	d.wantCell(unknownPath, "")
	d.wantCell(suspendedPath, "") // it may have moved to b
	d.wantCell("/", "")
	d.wantCell(unknownPath+"?jwtRequest="+jwt(`{}`, `{"iss":"https://id.test/v1/applications/`+inA+`"}`), "a")

	d.b.setDown(false)
	d.polls(1)
	d.wantCell(pathB, "b")
	d.wantCell(unknownPath, "a")
	d.wantCell(suspendedPath, "a")
}

func TestACellOfAnotherKeyIsNoAnswer(t *testing.T) {
	t.Parallel()
	d := newDeployment(t)
	d.cells[1].keySecret = "another"
	_, path := newID()
	d.wantCell(path, "")
}

func TestManyRequestsForOneNameShareALookUp(t *testing.T) {
	t.Parallel()
	d := newDeployment(t)
	account, path := newID()
	d.a.has("id="+account, "t1", "ENABLED")
	release, asked := make(chan struct{}), make(chan struct{}, 100)
	d.a.during = func() {
		asked <- struct{}{}
		<-release
	}
	var wg sync.WaitGroup
	began := make(chan struct{}, 50)
	for range 50 {
		wg.Go(func() {
			began <- struct{}{}
			d.wantCell(path, "a")
		})
	}
	for range 50 {
		<-began
	}
	<-asked
	close(release)
	wg.Wait()
	if times := d.a.asked("id=" + account); times != 1 {
		t.Errorf("50 requests at once asked the cell %d times, want once", times)
	}
}

func TestLookUpsAtATimeAreBounded(t *testing.T) {
	t.Parallel()
	for bound, path := range map[int]func(int) string{
		maxIDs:     func(int) string { _, path := newID(); return path },
		maxLookups: func(i int) string { return "/client/label-" + strconv.Itoa(i) },
	} {
		d := newDeployment(t)
		release, asked := make(chan struct{}), make(chan struct{}, 3*bound)
		d.a.during = func() {
			asked <- struct{}{}
			<-release
		}
		var wg sync.WaitGroup
		for i := range 3 * bound {
			wg.Go(func() { d.ask(path(i)) })
		}
		for range bound {
			<-asked
		}
		close(release)
		wg.Wait()
		if d.a.most != bound {
			t.Errorf("%d look-ups ran at a time, want %d", d.a.most, bound)
		}
	}
}

func TestARequestWhoseProxyHasGone(t *testing.T) {
	t.Parallel()
	d := newDeployment(t)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	_, path := newID()
	w := httptest.NewRecorder()
	d.ServeHTTP(w, httptest.NewRequestWithContext(gone, http.MethodGet, path, nil))
	if w.Code != http.StatusServiceUnavailable {
		t.Errorf("a request whose proxy has gone is answered with %d", w.Code)
	}
}

func TestTheCheckNamesCellsThatDoNotAnswer(t *testing.T) {
	t.Parallel()
	d := newDeployment(t)
	if failed := d.Check(t.Context()); len(failed) != 0 {
		t.Errorf("cells that answer: %v", failed)
	}
	d.b.setDown(true)
	failed := d.Check(t.Context())
	if len(failed) != 1 || !strings.Contains(failed["b"].Error(), "502") {
		t.Errorf("a cell that answers 502: %v", failed)
	}
}

func TestServeFollowsTheEventsUntilItEnds(t *testing.T) {
	t.Parallel()
	d := newDeployment(t)
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- d.Serve(ctx, "127.0.0.1:0") }()
	for {
		d.b.mu.Lock()
		polls := d.b.eventsAsked
		d.b.mu.Unlock()
		if polls > 1 {
			break
		}
		select {
		case err := <-served:
			t.Fatal(err)
		case <-time.After(time.Millisecond):
		}
	}
	cancel()
	if err := <-served; err != nil {
		t.Errorf("the end of Serve: %v", err)
	}
}

func TestTheFileOfTheCells(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	write("key", "cells:lookup:"+secret+"\n")
	write("short", "cells:"+secret)
	write("keys", "one:lookup:x two:lookup:y")
	write("empty.pem", "")
	const a = `{"name":"a","address":"a:443","operator":"https://a:9443/","keyFile":"key"}`
	for _, file := range []string{"key", "short"} {
		c, err := ReadConfig(write("cells.json", `{"cells":[`+strings.Replace(a, `"key"`, `"`+file+`"`, 1)+`],"default":"a"}`))
		if err != nil || c.Cells[0].keyName != "cells" || c.Cells[0].keySecret != secret || c.Cells[0].Operator != "https://a:9443" {
			t.Errorf("a file with the key file %s is read as %+v, %v", file, c, err)
		}
	}
	for why, content := range map[string]string{
		"default":         `{"cells":[` + a + `],"default":"b"}`,
		"two cells":       `{"cells":[` + a + `,` + a + `],"default":"a"}`,
		"unknown field":   `{"cells":[],"defaults":"a"}`,
		"EOF":             ``,
		"operator":        `{"cells":[` + strings.Replace(a, "https://a:9443/", "a:9443", 1) + `],"default":"a"}`,
		"address":         `{"cells":[` + strings.Replace(a, "a:443", "", 1) + `],"default":"a"}`,
		"visible":         `{"cells":[` + strings.Replace(a, "a:443", `a\n`, 1) + `],"default":"a"}`,
		"keyFile":         `{"cells":[` + strings.Replace(a, `"key"`, `"none"`, 1) + `],"default":"a"}`,
		"name:role":       `{"cells":[` + strings.Replace(a, `"key"`, `"keys"`, 1) + `],"default":"a"}`,
		"no certificate":  `{"cells":[` + strings.Replace(a, `"key"`, `"key","caFile":"empty.pem"`, 1) + `],"default":"a"}`,
		"no such file or": `{"cells":[` + strings.Replace(a, `"key"`, `"key","caFile":"none.pem"`, 1) + `],"default":"a"}`,
	} {
		if _, err := ReadConfig(write("cells.json", content)); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s is read with %v, want an error about %s", content, err, why)
		}
	}
}

// BenchmarkAKeptName is the cost that a request behind doorward cells has once its tenant is known (docs/cells.md).
func BenchmarkAKeptName(b *testing.B) {
	a := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(tenant{ID: "t1", Status: "ENABLED"})
	}))
	defer a.Close()
	d := New(Config{Cells: []CellConfig{{Name: "a", Address: "a:443", Operator: a.URL}}, Default: "a"}, time.Now)
	r := httptest.NewRequestWithContext(b.Context(), http.MethodGet, "/v1/applications/1a2b3c4d5e6f7G8H9I0J1K/authTokens/x", nil)
	r.SetBasicAuth(apiKey, "secret")
	for b.Loop() {
		d.ServeHTTP(httptest.NewRecorder(), r)
	}
}
