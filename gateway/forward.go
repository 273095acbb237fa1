package gateway

import (
	"bytes"
	"context"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/rpc"
)

// forwarded are the headers of a client that a service gets. All others are
// dropped: among them the client's own Doorward-Caller, what only concerns the
// connection, and what proxies wrote about the client. The last is how the
// provider of text messages signs its receipts.
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
		to.Del(fiber.HeaderIfNoneMatch) // it does not cover the expanded links
	}
	switch x.route.access {
	case byBrowser:
		carry(from, to, fiber.HeaderCookie)
		fallthrough
	case byNone:
		carry(from, to, fiber.HeaderAuthorization)
	}
	if x.host != "" {
		carry(from, to, fiber.HeaderAcceptEncoding) // of the files of hosted pages
		to.Set(hostHeader, x.host)
	}
	if x.address.IsValid() {
		to.Set(fiber.HeaderXForwardedFor, x.address.String())
	}
	if g.keys.changedRecently(x.caller.Tenant) {
		to.Set(caller.ChangedHeader, "1")
	}
	if x.method == fiber.MethodPost {
		to.SetContentTypeBytes(from.ContentType())
		request.SetBodyRaw(x.Request().Body())
	}

	response := x.Response()
	if err := g.send(x.ctx, x.route, x.method, x.target, x.signed, request, response); err != nil {
		return err
	}
	g.noteChange(x)
	if x.route.access == byKey && response.StatusCode() == fiber.StatusUnauthorized { // the key has ended since it was asked for
		response.Header.Set(fiber.HeaderWWWAuthenticate, g.challenge)
	}
	for _, name := range hopByHop {
		response.Header.Del(name)
	}
	g.secureTransport(x)
	if len(response.Body()) == 0 { // no body, no type
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
func (g *Gateway) send(ctx context.Context, r *route, method string, target []byte, signed string, request *fasthttp.Request,
	response *fasthttp.Response) error {
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

// release leaves large buffers to the collector instead of keeping them with the
// connection.
func release(x *exchange) {
	const large = 1 << 20
	x.Request().ReleaseBody(large)
	response := x.Response()
	if body := response.Body(); cap(body) > large {
		_ = response.SwapBody(nil) // else the buffer goes back to the pool while it is sent
		response.SetBodyRaw(body)
	}
}

// isJSON reports whether an answer holds a resource.
func isJSON(response *fasthttp.Response) bool {
	return bytes.HasPrefix(response.Header.ContentType(), []byte("application/json"))
}
