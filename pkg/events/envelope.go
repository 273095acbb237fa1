// Package events lists what services tell each other (types.go), in which form it is
// stored and sent (envelope.go), and how it is handled. Package outbox carries it.
//
// A service has its handlers in its handlers.go, and registers them with Consume:
//
//	func (s *Service) Handlers() []events.Handler {
//		return []events.Handler{events.On(s.accountDeleted), events.On(s.groupDeleted)}
//	}
package events

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"time"

	"go.opentelemetry.io/otel/propagation"

	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/telemetry"
)

// Event is one of the types of types.go.
type Event interface {
	// About names the tenant, and the resource whose events keep their order.
	About() (tenant, subject id.ID)
}

// Envelope is the form in which an event is stored and sent.
type Envelope struct {
	ID        id.ID             `json:"id"`   // the same on every delivery
	Type      string            `json:"type"` // name of the Go type
	Tenant    id.ID             `json:"tenant"`
	Subject   id.ID             `json:"subject"`
	At        time.Time         `json:"at"`
	RequestID string            `json:"request,omitempty"` // of the request that caused it
	Trace     map[string]string `json:"trace,omitempty"`   // W3C trace context of that request
	Data      json.RawMessage   `json:"data"`
}

// Wrap makes the envelope of an event that ctx's request causes.
func Wrap(ctx context.Context, event Event, now time.Time) (Envelope, error) {
	data, err := json.Marshal(event)
	if err != nil {
		return Envelope{}, err
	}
	trace := propagation.MapCarrier{}
	telemetry.InjectTrace(ctx, trace)
	tenant, subject := event.About()
	return Envelope{
		ID: id.New(now), Type: reflect.TypeOf(event).Name(), Tenant: tenant, Subject: subject,
		At: now, RequestID: caller.From(ctx).RequestID, Trace: trace, Data: data,
	}, nil
}

// Context returns the context in which the event is handled: the caller of the
// tenant and the trace of the request that caused it.
func (e Envelope) Context(ctx context.Context) context.Context {
	ctx = caller.Into(ctx, caller.Caller{Tenant: e.Tenant, RequestID: e.RequestID})
	return telemetry.ExtractTrace(ctx, propagation.MapCarrier(e.Trace))
}

// Handler handles the events of one type.
type Handler struct {
	Event  string // name of the type
	Handle func(context.Context, Envelope) error
}

// On makes a handler. fn runs again after a failure or a second delivery, so
// that its effect must be in one transaction with tx.Seen.
func On[E Event](fn func(context.Context, Envelope, E) error) Handler {
	name := reflect.TypeFor[E]().Name()
	return Handler{name, func(ctx context.Context, e Envelope) error {
		var event E
		if err := json.Unmarshal(e.Data, &event); err != nil {
			return Malformed{fmt.Errorf("read the event %s %s: %w", name, e.ID, err)}
		}
		return fn(ctx, e, event)
	}}
}

// Malformed marks an event that no retry can read.
type Malformed struct{ error }

func (m Malformed) Unwrap() error { return m.error }
