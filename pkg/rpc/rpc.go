package rpc

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/valyala/fasthttp"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/telemetry"
)

// Prefix is the path prefix of the methods of contracts. The gateway does not forward such paths.
const Prefix = "/internal/"

// Peer is a service that this process calls: its addresses, and the signer of the
// Caller that each call has (pkg/caller/caller.go).
type Peer struct {
	Upstream *Upstream
	Signer   *caller.Signer
}

// Call calls a method of a peer's contract. It returns the error that the method returned, or
// apierr.Unavailable when no replica answers. A call whose connection breaks is retried: methods of
// a contract are idempotent, because a request that creates something has the id of the new
// resource.
func Call[Request, Response any](ctx context.Context, peer Peer, method string, in Request) (Response, error) {
	var out Response
	ctx, span := telemetry.Span(ctx, peer.Upstream.Name+"."+method)
	defer span.End()

	request, response := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
	defer fasthttp.ReleaseRequest(request)
	defer fasthttp.ReleaseResponse(response)
	var body bytes.Buffer
	encoder := json.NewEncoder(&body)
	encoder.SetEscapeHTML(false) // escaping would make six bytes of <, > and &
	if err := encoder.Encode(in); err != nil {
		return out, fmt.Errorf("call %s.%s: %w", peer.Upstream.Name, method, err)
	}
	request.Header.SetMethod(fasthttp.MethodPost)
	request.SetRequestURI(Prefix + method)
	request.Header.SetContentType("application/json")
	request.Header.Set(caller.Header, peer.Signer.Sign(caller.From(ctx)))
	telemetry.InjectTrace(ctx, headerCarrier{&request.Header})
	request.SetBodyRaw(body.Bytes())
	if err := peer.Upstream.Do(ctx, request, response, true); err != nil {
		return out, err
	}
	for tenant, ended := range caller.ParseEnded(response.Header.Peek(caller.EndedHeader)) {
		for resource := range ended.All() {
			caller.End(ctx, tenant, resource)
		}
	}
	if response.StatusCode() != fasthttp.StatusOK {
		refusal := new(apierr.Error)
		if json.Unmarshal(response.Body(), refusal) != nil || refusal.Code == 0 {
			return out, fmt.Errorf("call %s.%s: unreadable answer with status %d", peer.Upstream.Name, method,
				response.StatusCode())
		}
		return out, refusal
	}
	if err := json.Unmarshal(response.Body(), &out); err != nil {
		return out, fmt.Errorf("call %s.%s: %w", peer.Upstream.Name, method, err)
	}
	return out, nil
}

// Router registers the methods of a service's contract; rest.Contract is the router that serves
// them over HTTP. The result of answer is sent as JSON.
type Router interface {
	Handle(method string, answer func(ctx context.Context, body []byte) (any, error))
}

// Serve registers the handler of a method of the service's contract.
func Serve[Request, Response any](router Router, method string,
	answer func(context.Context, Request) (Response, error)) {
	router.Handle(method, func(ctx context.Context, body []byte) (any, error) {
		var in Request
		if err := json.Unmarshal(body, &in); err != nil {
			return nil, apierr.Format.Because("the call of %s cannot be read: %v", method, err)
		}
		return answer(ctx, in)
	})
}

// headerCarrier is the propagation.TextMapCarrier of the headers of a request.
type headerCarrier struct{ *fasthttp.RequestHeader }

func (h headerCarrier) Get(name string) string { return string(h.Peek(name)) }
func (h headerCarrier) Set(name, value string) { h.RequestHeader.Set(name, value) }
func (h headerCarrier) Keys() (names []string) {
	for name := range h.All() {
		names = append(names, string(name))
	}
	return names
}

// InjectTrace writes the trace context of ctx into the headers of a request (traceparent).
func InjectTrace(ctx context.Context, h *fasthttp.RequestHeader) {
	telemetry.InjectTrace(ctx, headerCarrier{h})
}

// ExtractTrace returns ctx with the trace context of the headers of a request (traceparent).
func ExtractTrace(ctx context.Context, h *fasthttp.RequestHeader) context.Context {
	return telemetry.ExtractTrace(ctx, headerCarrier{h})
}
