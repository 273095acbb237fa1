package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/doorward/doorward/deploy/e2e"
	"github.com/doorward/doorward/deploy/e2e/loadgen"
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

// outcome is what came back of the requests of a run.
type outcome struct{ *loadgen.Outcome }

// of returns the latencies of a kind of request in milliseconds, from when they were due.
func (o outcome) of(kind string) []float64 { return milliseconds(o.Latencies[kind]) }

func (o outcome) all() []float64 { return milliseconds(o.All()) }

func milliseconds(times []time.Duration) (values []float64) {
	for _, t := range times {
		values = append(values, float64(t)/float64(time.Millisecond))
	}
	return values
}

// throughput is the fraction of the requests that succeeded.
func (o outcome) throughput() float64 { return float64(o.Done()) / float64(max(o.Due(), 1)) }

// failures lists the failures by kind and status.
func (o outcome) failures() string {
	text := o.FailuresText()
	if o.Unsent > 0 {
		text = strings.TrimPrefix(fmt.Sprintf("%s, %d unsent", text, o.Unsent), ", ")
	}
	return cmp.Or(text, "none")
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
func (s *system) send(ctx context.Context, length time.Duration, st stream) outcome {
	l := loadgen.Load{Workers: st.maxInFlight, Rate: st.rate, Length: length}
	return outcome{l.Run(ctx, func() (loadgen.Operation, func()) {
		return func(n uint64) (string, error) {
			round, turn := int(n)/len(st.tenants), int(n)%len(st.tenants)
			kind := st.mix[(round+turn)%len(st.mix)] // in a short run each kind has its part
			return kind, s.do(ctx, st.tenants[turn], kinds[kind])
		}, func() {}
	})}
}

// refusal is the status of an answer with its error code.
type refusal string

func (r refusal) Error() string { return string(r) }

// Kind is the name under which the refusal is counted.
func (r refusal) Kind() string { return string(r) }

// do sends a request.
func (s *system) do(ctx context.Context, t *tenant, k kind) error {
	answer, err := s.client.With(t.id, t.secret).Do(ctx, k.request(t))
	if err != nil {
		return err
	}
	if answer.Status != k.want {
		var body struct{ Code int }
		_ = json.Unmarshal(answer.Body, &body)
		return refusal(fmt.Sprintf("%d (%d)", answer.Status, body.Code))
	}
	return nil
}
