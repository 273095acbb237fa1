// Package events has the events between services: their types (types.go), the envelope in which they
// are stored and sent (envelope.go), and the type of their handlers. Package outbox publishes and
// consumes them (Kafka).
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
	"github.com/doorward/doorward/pkg/locale"
	"github.com/doorward/doorward/pkg/telemetry"
)

// Event is one of the types of types.go.
type Event interface {
	// About returns the tenant, and the resource whose events are delivered in order.
	About() (tenant, subject id.ID)
}

// Envelope is the form in which an event is stored and sent.
type Envelope struct {
	ID        id.ID     `json:"id"`   // the same on every delivery
	Type      string    `json:"type"` // name of the Go type
	Tenant    id.ID     `json:"tenant"`
	Subject   id.ID     `json:"subject"`
	At        time.Time `json:"at"`
	RequestID string    `json:"request,omitempty"` // id of the request that caused the event
	// of that request, one of locale.Languages, or "": for its mails
	Language string `json:"language,omitempty"`
	// W3C trace context (traceparent) of that request, here and not in a Kafka header
	Trace map[string]string `json:"trace,omitempty"`
	Data  json.RawMessage   `json:"data"`
}

// Wrap makes the envelope of an event. ctx is the context of the request that causes it.
func Wrap(ctx context.Context, event Event, now time.Time) (Envelope, error) {
	data, err := json.Marshal(event)
	if err != nil {
		return Envelope{}, err
	}
	trace := propagation.MapCarrier{}
	telemetry.InjectTrace(ctx, trace)
	tenant, subject := event.About()
	by := caller.From(ctx)
	return Envelope{
		ID: id.New(now), Type: reflect.TypeOf(event).Name(), Tenant: tenant, Subject: subject,
		At: now, RequestID: by.RequestID, Language: locale.OfHeader(by.AcceptLanguage), Trace: trace, Data: data,
	}, nil
}

// Context returns the context in which the event is handled: the caller of the
// tenant, and the language and the trace of the request that caused it.
func (e Envelope) Context(ctx context.Context) context.Context {
	ctx = caller.Into(ctx, caller.Caller{Tenant: e.Tenant, RequestID: e.RequestID, AcceptLanguage: e.Language})
	return telemetry.ExtractTrace(ctx, propagation.MapCarrier(e.Trace))
}

// Handler handles the events of one type.
type Handler struct {
	Event  string // name of the type
	Handle func(context.Context, Envelope) error
}

// On makes a handler. fn runs again after a failure or a second delivery (at least once), so that it
// must be idempotent: Once.
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

// Once runs the effect of an event in a transaction that marks the event as seen, unless an earlier delivery has done
// so. run is the method Tx of the store of a service.
func Once[Tx interface {
	Seen(context.Context, Envelope) (bool, error)
}](ctx context.Context, run func(context.Context, func(Tx) error) error, e Envelope, effect func(Tx) error) error {
	return run(ctx, func(tx Tx) error {
		seen, err := tx.Seen(ctx, e)
		if err != nil || seen {
			return err
		}
		return effect(tx)
	})
}

// Malformed is the error of an event that cannot be decoded: it is not retried.
type Malformed struct{ error }

func (m Malformed) Unwrap() error { return m.error }
