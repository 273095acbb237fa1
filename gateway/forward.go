package gateway

import (
	"bytes"
	"context"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/rpc"
)

// forwarded are the headers of a client that a service gets. All others are
// dropped: among them the client's own Doorward-Caller, what only concerns the
// connection, and what proxies wrote about the client. By the last the provider
// of text messages signs its receipts.
var forwarded = []string{
	fiber.HeaderAccept, fiber.HeaderAcceptLanguage, fiber.HeaderUserAgent, fiber.HeaderOrigin, fiber.HeaderIfNoneMatch,
	"Sec-Fetch-Site", fiber.HeaderAccessControlRequestMethod, fiber.HeaderAccessControlRequestHeaders, "X-Twilio-Signature",
}

// hopByHop are the headers of an answer that concern only the connection to
// the service (RFC 9110, section 7.6.1).
var hopByHop = []string{
	fiber.HeaderConnection, fiber.HeaderKeepAlive, "Proxy-Connection", fiber.HeaderTE, fiber.HeaderTrailer,
	fiber.HeaderTransferEncoding, fiber.HeaderUpgrade, fiber.HeaderServer,
}

// mean takes _method and expand out of the query of a managed path; other
// queries belong to the service.
func (g *Gateway) methodOverride(x *exchange) (err error) {
	if len(x.query) > 0 {
		x.target = append(x.target, '?')
	}
	if !x.managed {
		x.target = append(x.target, x.query...)
		if x.method == fiber.MethodHead {
			x.method = fiber.MethodGet
		}
		return nil
	}
	with := len(x.target)
	if x.target, x.ownParameters, err = splitQuery(x.target, x.query); err != nil {
		return err
	}
	if len(x.target) == with { // nothing is left of the query
		x.target = x.target[:x.path]
	}
	x.method, err = standsFor(x.method, x.ownParameters.method)
	return err
}

// offer refuses unknown paths and methods.
func (g *Gateway) checkMethod(x *exchange) error {
	if x.route == nil {
		return apierr.NotFound
	}
	if !x.route.offers(x.method) {
		refusal := *apierr.MethodNotAllowed.Because("this path offers: %s", x.route.allow)
		refusal.Allow = x.route.allow
		x.Set(fiber.HeaderAllow, refusal.Allow) // also where it is empty (RFC 9110, section 15.5.6)
		return &refusal
	}
	return nil
}

// forward sends the request to the service that owns the path. The answer is
// read straight into the client's.
func (g *Gateway) forward(x *exchange) error {
	request := fasthttp.AcquireRequest()
	defer fasthttp.ReleaseRequest(request)
	from, to := &x.Request().Header, &request.Header
	for _, name := range forwarded {
		if value := from.Peek(name); len(value) > 0 {
			to.SetBytesV(name, value)
		}
	}
	if len(x.expansions) > 0 {
		to.Del(fiber.HeaderIfNoneMatch) // it tells nothing of the expanded links
	}
	switch x.route.access {
	case byBrowser:
		carry(from, to, fiber.HeaderCookie)
		fallthrough
	case byNone:
		carry(from, to, fiber.HeaderAuthorization)
	}
	if x.address.IsValid() {
		to.Set(fiber.HeaderXForwardedFor, x.address.String())
	}
	if x.method == fiber.MethodPost {
		to.SetContentTypeBytes(from.ContentType())
		request.SetBodyRaw(x.Request().Body())
	}

	response := x.Response()
	if err := g.send(x.ctx, x.route, x.method, x.target, x.signed, request, response); err != nil {
		return err
	}
	if x.method != fiber.MethodGet && x.route.pattern == keyPattern {
		g.keys.forget(x.target[:x.path])
	}
	for _, name := range hopByHop {
		response.Header.Del(name)
	}
	if len(response.Body()) == 0 { // nothing has no type
		response.Header.SetNoDefaultContentType(true)
		response.Header.SetContentType("")
	}
	release(x)
	return nil
}

func carry(from, to *fasthttp.RequestHeader, name string) {
	if value := from.Peek(name); len(value) > 0 {
		to.SetBytesV(name, value)
	}
}

// send completes a request to a service and reads the answer. Where a path has
// several owners, one that answers 404 does not have what the path names, nor has
// it changed anything: the next is asked. Each looks among what the caller's
// tenant has.
func (g *Gateway) send(ctx context.Context, r *route, method string, target []byte, signed string, request *fasthttp.Request, response *fasthttp.Response) error {
	h := &request.Header
	h.SetNoDefaultContentType(true)
	h.SetMethod(method)
	h.SetRequestURIBytes(target)
	h.Set(caller.Header, signed)
	rpc.Trace(ctx, h)
	for _, upstream := range r.upstreams {
		err := upstream.Do(ctx, request, response, method == fiber.MethodGet)
		if err != nil || response.StatusCode() != fiber.StatusNotFound {
			return err
		}
	}
	return nil
}

// release gives large buffers back to the collector instead of keeping them
// with the connection.
func release(x *exchange) {
	const large = 1 << 20
	x.Request().ReleaseBody(large)
	if response := x.Response(); cap(response.Body()) > large {
		response.SetBodyRaw(response.SwapBody(nil))
	}
}

// isJSON reports whether an answer holds a resource.
func isJSON(response *fasthttp.Response) bool {
	return bytes.HasPrefix(response.Header.ContentType(), []byte("application/json"))
}
