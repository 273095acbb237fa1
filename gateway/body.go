package gateway

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"github.com/doorward/doorward/gateway/connection"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/rest"
)

// The URL limit, the header limit, the body limits (413; http.MaxBytesReader elsewhere) and the
// timeouts of a request (docs/interface/limits.md#request-size).
const (
	maxURL  = 16 << 10
	maxForm = 64 << 10
	// maxSAMLForm is the largest form at the two addresses to which a browser posts a message of SAML:
	// an assertion with many groups, encrypted, is larger than other forms.
	maxSAMLForm = 512 << 10
	// maxUnauthenticated is the largest body that is read before the API key is
	// verified, and so the largest body of a request without an API key.
	maxUnauthenticated = 64 << 10
	// maxSmall is the largest body that is admitted by maxTenantQueue alone. Of larger bodies
	// only maxLargeBodies, and maxTenantLargeBodies of a tenant, are admitted at a time: a body
	// of 10 MB takes several times its size in memory while it is read, validated and stored.
	maxSmall = 1 << 20

	// maxUnqueued is the largest body of which a tenant may send any number at a time, and the
	// largest that is forwarded at once. Larger bodies wait in a queue in which the tenants
	// take turns: to validate and store them takes processor time.
	maxUnqueued         = 128 << 10
	maxConcurrentBodies = 2               // bodies of more than maxUnqueued that this process forwards at a time
	maxTenantBodies     = 1               // the same bodies of one tenant
	maxBodyQueue        = 32              // bodies that wait for their turn
	maxTenantQueue      = 8               // bodies of one tenant that are read, wait or are forwarded at a time
	bodyQueueTime       = 5 * time.Second // how long each waits at most

	// maxHeaders is the header limit (MaxHeaderBytes of net/http). It has room for ten cookies of
	// 4 KB, the largest that browsers keep: whoever can plant those shall not lock the browser out. It
	// is less than the header limit of a service, to which the gateway sends additional headers.
	maxHeaders = 54 << 10

	maxLargeBodies       = 6 // bodies of more than maxSmall at a time in this process
	maxTenantLargeBodies = 2 // the same bodies of one tenant
	maxSignedBodies      = 8 // bodies at a time of one API key whose signature is not verified yet

	// idleTimeout is longer than the 90 s or less for which clients keep an idle
	// connection: a client may just send a request on a connection that the server closes.
	idleTimeout      = 2 * time.Minute  // for the first byte of the next request (keep-alive)
	headerTimeout    = 10 * time.Second // for a TLS handshake, and again for the headers
	bodyTimeout      = time.Minute      // for headers and body
	largeBodyTimeout = 15 * time.Second // for a body of more than maxSmall
	writeTimeout     = time.Minute      // for a client to read its answer

	// largeRequestTimeout bounds a request with a body of more than maxSmall,
	// from its headers to its answer.
	largeRequestTimeout = 19 * time.Second
)

// setReadLimits bounds how much the server reads of a request and for how long. It reads the headers;
// the middleware readBody reads the body, when it is known who sends it.
func (g *Gateway) setReadLimits(server *fasthttp.Server) {
	server.IdleTimeout, server.ReadTimeout, server.WriteTimeout = idleTimeout, headerTimeout, writeTimeout
	server.ReadBufferSize = maxHeaders
	server.SecureErrorLogMessage = true // else errors quote headers
	server.CloseOnShutdown = true
	server.StreamRequestBody = true
	knownMethods := g.HTTP.Config().RequestMethods
	server.HeaderReceived = func(h *fasthttp.RequestHeader) fasthttp.RequestConfig {
		if !slices.Contains(knownMethods, string(h.Method())) {
			h.SetMethod(fiber.MethodPut) // which no route allows: 405, unless another error comes first
		}
		// The handler is called when the first byte of a body has come, not when 8 KB have.
		return fasthttp.RequestConfig{ReadTimeout: bodyTimeout, MaxRequestBodySize: 1}
	}
}

// chunked is the ContentLength of a request with Transfer-Encoding: chunked.
const chunked = -1

// announcedLength returns the length of the body as the headers have it, or chunked.
func announcedLength(h *fasthttp.RequestHeader) int {
	if length := h.ContentLength(); length >= chunked {
		return length
	}
	return 0 // neither a length nor chunks: no body
}

// admitBody is the middleware that admits the body of a request before it is read, or refuses it
// (admission control, load shedding): of the bodies of more than maxSmall, and of those of more than
// maxUnqueued, each tenant has a few at a time, and the process some of the former.
func (g *Gateway) admitBody(rc *requestContext) error {
	if err := g.limitBody(rc, rc.caller.Tenant); err != nil {
		return err
	}
	if rc.isLarge || rc.caller.Tenant.IsZero() || max(rc.bodyLength, len(rc.body)) <= maxUnqueued {
		return nil
	}
	return g.acquireLimits(rc, tenantSubject(queuedBodyLimit, rc.caller.Tenant))
}

// limitBody decides how much is read of a body, unless that was decided for its signature. A body of
// more than maxSmall is counted.
func (g *Gateway) limitBody(rc *requestContext, tenant id.ID) error {
	if rc.bodyLimit > 0 {
		return nil
	}
	switch {
	case isForm(rc.Request().Header.ContentType()):
		rc.bodyLimit = formLimit(&rc.Request().Header)
		rc.tooLarge = apierr.TooLarge.Because("a form may have %d bytes here", rc.bodyLimit)
	case tenant.IsZero():
		rc.bodyLimit = maxUnauthenticated
		rc.tooLarge = apierr.TooLarge.Because("a body that comes without an API key may have %d bytes", rc.bodyLimit)
	default:
		rc.bodyLimit, rc.tooLarge = rest.MaxBody, apierr.TooLarge.Because("a body may have %d bytes", rest.MaxBody)
	}
	switch {
	case rc.bodyLength > rc.bodyLimit:
		return g.refusals.countAs("too_large", rc.tooLarge)
	case rc.bodyLimit == rest.MaxBody && (rc.bodyLength == chunked || rc.bodyLength > maxSmall):
		rc.isLarge = true
		return g.acquireLimits(rc, subject{kind: processBodyLimit}, tenantSubject(bodyLimit, tenant))
	}
	return nil
}

// readSignedBody reads the body that a signature covers, which must be known to verify it. Of large
// bodies the API key must exist, and only a few of one key are read at a time, because the id of a key is
// no secret.
func (g *Gateway) readSignedBody(rc *requestContext, keyID string) error {
	if rc.bodyLength != chunked && rc.bodyLength <= maxUnauthenticated {
		rc.bodyLimit = maxUnauthenticated
		return g.readBody(rc)
	}
	owner, err := g.apiKeys.findByID(rc.ctx, keyID, addressSubject(signerLimit, rc.address))
	if err != nil {
		return err
	}
	ofKey := hashedSubject(signedBodyLimit, []byte(keyID))
	if limit := g.Limiter.acquire(rc.UserContext(), ofKey); limit != nil {
		return limit
	}
	defer g.Limiter.release(ofKey)
	if err := g.limitBody(rc, owner.Tenant); err != nil {
		return err
	}
	return g.readBody(rc)
}

// readBody is the middleware that reads the body, up to the limit with which it was admitted. The
// timeout of the request begins when it was read.
func (g *Gateway) readBody(rc *requestContext) error {
	if rc.bodyRead {
		return nil
	}
	rc.bodyRead = true
	deadline := time.Now().Add(largeRequestTimeout)
	if rc.isLarge {
		_ = rc.Context().Conn().SetReadDeadline(time.Now().Add(g.largeBodyTimeout))
	}
	if stream := rc.Request().BodyStream(); stream != nil {
		var err error
		if rc.body, err = readUpTo(rc.body[:0], stream, rc.bodyLength, rc.bodyLimit); err != nil {
			closeAfterAnswer(rc)
			return g.refuseBody(rc, err)
		}
		rc.Request().SetBodyRaw(rc.body)
	}
	if !rc.isLarge {
		deadline = time.Now().Add(requestTimeout)
	}
	rc.ctx, rc.cancel = context.WithDeadline(rc.ctx, deadline)
	return nil
}

// readUpTo reads a body of the announced length, or in chunks, into buffer. It returns
// fasthttp.ErrBodyTooLarge for one that is larger than limit.
func readUpTo(buffer []byte, from io.Reader, length, limit int) ([]byte, error) {
	if length != chunked {
		buffer = slices.Grow(buffer, length)[:length]
		_, err := io.ReadFull(from, buffer)
		return buffer, err
	}
	for {
		buffer = slices.Grow(buffer, bytes.MinRead)
		n, err := from.Read(buffer[len(buffer):cap(buffer)])
		buffer = buffer[:len(buffer)+n]
		switch {
		case len(buffer) > limit:
			return buffer, fasthttp.ErrBodyTooLarge
		case errors.Is(err, io.EOF):
			return buffer, nil
		case err != nil:
			return buffer, err
		}
	}
}

// refuseBody returns the error for a body that could not be read.
func (g *Gateway) refuseBody(rc *requestContext, err error) error {
	if errors.Is(err, fasthttp.ErrBodyTooLarge) {
		return g.refusals.countAs("too_large", rc.tooLarge)
	}
	return apierr.BadRequest.Because("the body did not arrive in time, or ended before its announced end")
}

// skipBody closes the connection after the answer to a request whose body was refused before it was read,
// unless the server can skip the body.
func (g *Gateway) skipBody(rc *requestContext) {
	if !rc.bodyRead && (rc.bodyLength == chunked || rc.bodyLength > maxUnauthenticated) {
		closeAfterAnswer(rc)
	}
}

// closeAfterAnswer closes the connection when the client, which may still be sending, has the answer.
func closeAfterAnswer(rc *requestContext) {
	rc.Context().SetConnectionClose()
	if c, ok := rc.Context().Conn().(*connection.Conn); ok {
		c.Linger()
	}
}

// queueBody is the middleware in which a large body waits for its turn. It returns
// apierr.TooMany where the queue is full or the turn does not come in bodyQueueTime. Only a few
// bodies of one tenant may wait: they take memory, and with it the processor time of garbage
// collections.
func (g *Gateway) queueBody(rc *requestContext) error {
	if len(rc.body) <= maxUnqueued {
		return nil
	}
	ctx, cancel := context.WithTimeout(rc.ctx, bodyQueueTime)
	defer cancel()
	if g.bodyQueue.Acquire(ctx, rc.caller.Tenant) != nil {
		return g.refusals.count(tooMany(bodyLimit, Limit{InFlight: maxTenantBodies}))
	}
	rc.inBodyQueue = true
	return nil
}

// formLimit returns the largest form that is read at the address of a request.
func formLimit(h *fasthttp.RequestHeader) int {
	path, _, _ := bytes.Cut(h.RequestURI(), []byte{'?'})
	path = bytes.TrimRight(path, "/")
	if bytes.HasSuffix(path, []byte("/saml/sso")) || bytes.HasSuffix(path, []byte("/saml/sso/post")) {
		return maxSAMLForm
	}
	return maxForm
}

func isForm(contentType []byte) bool {
	kind, _, _ := bytes.Cut(contentType, []byte{';'})
	return bytes.EqualFold(bytes.TrimSpace(kind), []byte(fiber.MIMEApplicationForm))
}
