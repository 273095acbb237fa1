// Package fault lets a test count, and break, the calls of a service that runs in its process. They pass
// through the client and the server of the contract, so that a broken call ends as one between two
// processes does.
package fault

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/rest"
	"github.com/doorward/doorward/pkg/rpc"
)

// Moment says when a broken call fails.
type Moment int

// A call fails before it had its effect, or after it: then only its answer is
// lost.
const (
	Before Moment = iota
	After
)

// Every stands for all methods.
const Every = "*"

// Injector counts the calls of a service and breaks those that a test names. Its
// zero value breaks none.
type Injector struct {
	mu     sync.Mutex
	broken map[string]broken
	calls  map[string]int
	bodies map[string][][]byte // the requests as JSON, by method
}

type broken struct {
	moment Moment
	cause  func() error
}

// Break makes a method of that name, or Every, fail with what cause returns, for
// as long as that is not nil.
func (i *Injector) Break(method string, moment Moment, cause func() error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.broken == nil {
		i.broken = map[string]broken{}
	}
	i.broken[method] = broken{moment, cause}
}

// Fail makes every call fail with err, without an effect, until it is nil.
func (i *Injector) Fail(err error) { i.Break(Every, Before, func() error { return err }) }

// Calls returns how many times a method was called.
func (i *Injector) Calls(method string) int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.calls[method]
}

// record keeps a request for Requests.
func (i *Injector) record(method string, body []byte) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.bodies == nil {
		i.bodies = map[string][][]byte{}
	}
	i.bodies[method] = append(i.bodies[method], bytes.Clone(body))
}

// Requests returns the requests with which a method was called, the oldest first.
func Requests[Request any](t testing.TB, i *Injector, method string) (all []Request) {
	t.Helper()
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, body := range i.bodies[method] {
		var in Request
		if err := json.Unmarshal(body, &in); err != nil {
			t.Fatal(err)
		}
		all = append(all, in)
	}
	return all
}

// at returns the error that a call of the method ends with at that moment. cause
// runs without the lock, so that it can call the service.
func (i *Injector) at(method string, moment Moment) error {
	i.mu.Lock()
	if i.calls == nil {
		i.calls = map[string]int{}
	}
	if moment == Before {
		i.calls[method]++
	}
	causes := []broken{i.broken[method], i.broken[Every]}
	i.mu.Unlock()
	for _, b := range causes {
		if b.cause == nil || b.moment != moment {
			continue
		}
		if err := b.cause(); err != nil {
			return err
		}
	}
	return nil
}

// Inject returns the client of a service, whose calls the injector counts and breaks. name is that of
// the service, and client and serve are those of its contract.
func Inject[Contract any](
	i *Injector, name string, client func(rpc.Peer) Contract, serve func(rpc.Router, Contract), service Contract,
) Contract {
	signer := caller.NewSigner("a secret of the tests, 32 characters", time.Now)
	app := rest.New(rest.Config{Service: name, Signer: signer})
	serve(router{rest.Contract(app), i, name + "."}, service)
	return client(rpc.Peer{Upstream: rpc.LocalUpstream(name, app.Handler()), Signer: signer})
}

// router serves the methods of a contract, each between the moments of an injector.
type router struct {
	rpc.Router
	injector *Injector
	prefix   string // of the names of methods
}

func (r router) Handle(method string, answer func(context.Context, []byte) (any, error)) {
	name := strings.TrimPrefix(method, r.prefix)
	r.Router.Handle(method, func(ctx context.Context, body []byte) (any, error) {
		r.injector.record(name, body)
		if err := r.injector.at(name, Before); err != nil {
			return nil, err
		}
		out, err := answer(ctx, body)
		if err != nil {
			return nil, err
		}
		return out, r.injector.at(name, After)
	})
}
