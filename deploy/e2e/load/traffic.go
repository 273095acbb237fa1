package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/doorward/doorward/deploy/e2e"
)

// tenant is the API key, the addresses and the token with which requests of a tenant are made.
type tenant struct {
	id, secret                      string // of its API key
	application, directory, account string // addresses
	email, token                    string
}

// largeText is smaller than the bodies of which a gateway admits only two of a tenant at a time.
var largeText = strings.Repeat("doorward ", 100_000)

// manyKeys is a body of the largest size that is refused for its number of keys.
var manyKeys = sync.OnceValue(func() []byte {
	var text bytes.Buffer
	for i := range 600_000 {
		fmt.Fprintf(&text, `,"key%06d":%d`, i, i%1000)
	}
	text.WriteByte('}')
	text.Bytes()[0] = '{'
	return text.Bytes()
})

// kind is a request of a tenant and the status of its answer.
type kind struct {
	want    int
	request func(*tenant) e2e.Request
}

// kinds are the requests of tenants, by the names of the flag -noise.
var kinds = map[string]kind{
	"login": {http.StatusOK, func(t *tenant) e2e.Request {
		return e2e.Login(e2e.Object{"href": t.application}, t.email, e2e.Password)
	}},
	"get":      {http.StatusOK, func(t *tenant) e2e.Request { return e2e.Get(t.account) }},
	"validate": {http.StatusFound, func(t *tenant) e2e.Request { return e2e.Get(t.application + "/authTokens/" + t.token) }},
	"search":   {http.StatusOK, func(t *tenant) e2e.Request { return e2e.Get(t.directory + "/accounts?q=a&orderBy=surname,email") }},
	"body":     {http.StatusOK, func(t *tenant) e2e.Request { return e2e.Post(t.account+"/customData", e2e.Object{"text": largeText}) }},
	"keys": {http.StatusBadRequest, func(t *tenant) e2e.Request {
		r := e2e.Post(t.account+"/customData", manyKeys())
		r.Header = http.Header{"Content-Type": {"application/json"}}
		return r
	}},
	"mail":   {http.StatusOK, mail},
	"render": {http.StatusOK, mail}, // of the largest template
}

func mail(t *tenant) e2e.Request {
	return e2e.Post(t.application+"/passwordResetTokens", e2e.Object{"email": t.email})
}

// share is the mix of requests of a tenant: of 20 requests so many of each kind.
var share = strings.Fields(strings.Repeat("validate ", 10) + strings.Repeat("get ", 5) + "search search login login mail")

// outcome is the latencies and failures of the requests of a run.
type outcome struct {
	mu        sync.Mutex
	due       int
	latencies map[string][]float64 // by kind, in milliseconds, from when a request was due
	failures  map[string]int       // by status or error
}

func (o *outcome) count(kind string, took time.Duration, failure string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if failure != "" {
		o.failures[kind+" "+failure]++
		return
	}
	o.latencies[kind] = append(o.latencies[kind], float64(took)/float64(time.Millisecond))
}

func (o *outcome) all() []float64 { return slices.Concat(slices.Collect(maps.Values(o.latencies))...) }

// throughput is the fraction of the requests that succeeded.
func (o *outcome) throughput() float64 { return float64(len(o.all())) / float64(max(o.due, 1)) }

// failuresText lists the failures by kind and status.
func (o *outcome) failuresText() string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(o.failures)) {
		parts = append(parts, fmt.Sprintf("%s: %d", name, o.failures[name]))
	}
	return cmp.Or(strings.Join(parts, ", "), "none")
}

// percentile is that of values; NaN where there are none.
func percentile(values []float64, of float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	slices.Sort(values)
	return values[min(len(values)-1, int(of*float64(len(values))))]
}

// stream is requests at a rate (open loop): the tenants take turns, and for each tenant
// the kinds of its mix take turns.
type stream struct {
	tenants     []*tenant
	mix         []string
	rate        float64 // in a second
	maxInFlight int     // further requests wait, and their waiting counts as latency
}

// send sends a stream for a length of time and waits for the answers.
func (s *system) send(ctx context.Context, length time.Duration, st stream) *outcome {
	o := &outcome{latencies: map[string][]float64{}, failures: map[string]int{}}
	began, slots := time.Now(), make(chan struct{}, st.maxInFlight)
	var inFlight sync.WaitGroup
	for n := 0; ctx.Err() == nil; n++ {
		due := began.Add(time.Duration(float64(n) / st.rate * float64(time.Second)))
		if due.Sub(began) >= length {
			break
		}
		time.Sleep(time.Until(due))
		round, turn := n/len(st.tenants), n%len(st.tenants)
		t, kind := st.tenants[turn], st.mix[(round+turn)%len(st.mix)] // in a short run each kind has its part
		o.due++
		inFlight.Go(func() {
			select {
			case slots <- struct{}{}:
				defer func() { <-slots }()
			case <-time.After(time.Until(began.Add(length))):
				o.count(kind, 0, "unsent")
				return
			}
			failure := s.do(ctx, t, kinds[kind])
			o.count(kind, time.Since(due), failure)
		})
	}
	inFlight.Wait()
	return o
}

// do sends a request. It returns "" or the kind of failure: the status with the error code, or
// "connection".
func (s *system) do(ctx context.Context, t *tenant, k kind) (failure string) {
	answer, err := s.client.With(t.id, t.secret).Do(ctx, k.request(t))
	switch {
	case err != nil:
		return "connection"
	case answer.Status != k.want:
		var refusal struct{ Code int }
		_ = json.Unmarshal(answer.Body, &refusal)
		return fmt.Sprintf("%d (%d)", answer.Status, refusal.Code)
	}
	return ""
}
