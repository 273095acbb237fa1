package gateway

import (
	"bytes"
	"context"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/rest"
	"github.com/doorward/doorward/pkg/rpc"
)

// forwardedHeaders are the headers of a client's request that are forwarded to a service. All
// other headers are dropped, so that a client cannot forge Doorward-Caller or X-Forwarded-For.
// X-Twilio-Signature is the signature with which the SMS provider signs its delivery receipts.
var forwardedHeaders = []string{
	fiber.HeaderAccept, fiber.HeaderAcceptLanguage, fiber.HeaderUserAgent, fiber.HeaderOrigin, fiber.HeaderIfNoneMatch,
	"Sec-Fetch-Site", fiber.HeaderAccessControlRequestMethod, fiber.HeaderAccessControlRequestHeaders,
	"X-Twilio-Signature",
}

// hopByHopHeaders are the headers of an answer that concern only the connection to
// the service (RFC 9110, section 7.6.1).
var hopByHopHeaders = []string{
	fiber.HeaderConnection, fiber.HeaderKeepAlive, "Proxy-Connection", fiber.HeaderTE, fiber.HeaderTrailer,
	fiber.HeaderTransferEncoding, fiber.HeaderUpgrade, fiber.HeaderServer,
}

// forward sends the request to the service that owns the path (reverse proxy). The answer of
// the service is read into the answer to the client, without a copy.
func (g *Gateway) forward(rc *requestContext) error {
	request := fasthttp.AcquireRequest()
	defer fasthttp.ReleaseRequest(request)
	from, to := &rc.Request().Header, &request.Header
	for _, name := range forwardedHeaders {
		if value := from.Peek(name); len(value) > 0 {
			to.SetBytesV(name, value)
		}
	}
	if len(rc.expansions) > 0 {
		to.Del(fiber.HeaderIfNoneMatch) // an ETag does not cover the expanded links
	}
	switch rc.route.access {
	case hostedAccess:
		copyHeader(from, to, fiber.HeaderCookie)
		fallthrough
	case publicAccess:
		copyHeader(from, to, fiber.HeaderAuthorization)
	}
	for _, proof := range from.PeekAll(rest.ProofHeader) { // a second one is refused by the service
		to.AddBytesV(rest.ProofHeader, proof)
	}
	if rc.forwardedHost != "" {
		copyHeader(from, to, fiber.HeaderAcceptEncoding) // compression of the files of hosted pages
		to.Set(hostHeader, rc.forwardedHost)
	}
	if rc.address.IsValid() {
		to.Set(fiber.HeaderXForwardedFor, rc.address.String())
	}
	if rc.method == fiber.MethodPost {
		to.SetContentTypeBytes(from.ContentType())
		request.SetBodyRaw(bytes.TrimPrefix(rc.Request().Body(), []byte(byteOrderMark)))
	}

	response := rc.Response()
	if err := g.callService(rc.ctx, rc.route, rc.method, rc.target, rc.signedCaller, request, response); err != nil {
		return err
	}
	g.apiKeys.end(response.Header.Peek(caller.EndedHeader))
	response.Header.Del(caller.EndedHeader)
	if rc.route.clients {
		g.recordClient(rc)
	}
	// the API key was revoked after authenticate
	if rc.route.access == keyAccess && response.StatusCode() == fiber.StatusUnauthorized {
		response.Header.Set(fiber.HeaderWWWAuthenticate, g.wwwAuthenticate)
	}
	for _, name := range hopByHopHeaders {
		response.Header.Del(name)
	}
	g.setHSTS(rc)
	if len(response.Body()) == 0 { // an answer without a body has no Content-Type
		response.Header.SetNoDefaultContentType(true)
		response.Header.SetContentType("")
	}
	releaseBuffers(rc)
	return nil
}

// byteOrderMark is skipped before a body: RFC 8259, section 8.1, lets a parser ignore it.
const byteOrderMark = "\uFEFF"

// copyHeader copies a header that is not empty.
func copyHeader(from, to *fasthttp.RequestHeader, name string) {
	if value := from.Peek(name); len(value) > 0 {
		to.SetBytesV(name, value)
	}
}

// callService completes a request to a service and reads the answer. Where a path has
// several services, one that answers 404 does not have the resource and has changed nothing:
// the request is sent to the next. Each searches the resources of the caller's tenant.
func (g *Gateway) callService(ctx context.Context, r *route, method string, target []byte, signedCaller string,
	request *fasthttp.Request,
	response *fasthttp.Response) error {
	h := &request.Header
	h.SetNoDefaultContentType(true)
	h.SetMethod(method)
	h.SetRequestURIBytes(target)
	h.Set(caller.Header, signedCaller)
	rpc.InjectTrace(ctx, h)
	for _, upstream := range r.upstreams {
		err := upstream.Do(ctx, request, response, method == fiber.MethodGet)
		if err != nil || response.StatusCode() != fiber.StatusNotFound {
			return err
		}
	}
	return nil
}

// releaseBuffers leaves large buffers to the garbage collector instead of keeping them with
// the connection.
func releaseBuffers(rc *requestContext) {
	const large = 1 << 20
	rc.Request().ReleaseBody(large)
	response := rc.Response()
	if body := response.Body(); cap(body) > large {
		_ = response.SwapBody(nil) // else the buffer goes back to the pool while it is sent
		response.SetBodyRaw(body)
	}
}

// isJSON reports whether the body of an answer is JSON.
func isJSON(response *fasthttp.Response) bool {
	return bytes.HasPrefix(response.Header.ContentType(), []byte("application/json"))
}
