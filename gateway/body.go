package gateway

import (
	"bytes"
	"context"
	"slices"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/caller"
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

// admission is the decision of admission control about a large body, by the headers of its
// request (load shedding).
type admission struct {
	err                 error     // the error for a body that is larger than what is read
	signatureUnverified bool      // the signature covers the body: it is verified after the body was read
	deadline            time.Time // of the whole request; zero for a body of at most maxSmall
	releaseUnverified   func()    // releases the limits that are acquired until the signature is verified
	releaseLarge        func()    // releases the limits that are acquired until the answer
	timer               *time.Timer
}

func (a *admission) release() {
	a.releaseUnverified()
	a.releaseLarge()
}

// setReadLimits bounds how much the server reads of a request and for how long.
func (g *Gateway) setReadLimits(server *fasthttp.Server) {
	server.IdleTimeout, server.ReadTimeout, server.WriteTimeout = idleTimeout, headerTimeout, writeTimeout
	server.ReadBufferSize = maxHeaders
	server.SecureErrorLogMessage = true // else errors quote headers
	server.CloseOnShutdown = true
	knownMethods := g.HTTP.Config().RequestMethods
	server.HeaderReceived = func(h *fasthttp.RequestHeader) fasthttp.RequestConfig {
		if !slices.Contains(knownMethods, string(h.Method())) {
			h.SetMethod(fiber.MethodPut) // which no route allows: 405, unless another error comes first
		}
		if a := g.takeAdmission(h); a != nil { // of an earlier request, whose header object is reused
			a.release()
		}
		switch length := h.ContentLength(); {
		case isForm(h.ContentType()):
			return fasthttp.RequestConfig{ReadTimeout: bodyTimeout, MaxRequestBodySize: formLimit(h)}
		case length != chunked && length <= maxUnauthenticated:
			return fasthttp.RequestConfig{ReadTimeout: bodyTimeout, MaxRequestBodySize: maxUnauthenticated}
		}
		return g.admitBody(h)
	}
}

// chunked is the ContentLength of a request with Transfer-Encoding: chunked.
const chunked = -1

// admitBody decides by the headers of a request how much of its body is read: maxUnauthenticated
// without a valid API key, maxSmall with a valid API key, and rest.MaxBody while the tenant and
// the process have fewer such bodies than their limits.
func (g *Gateway) admitBody(h *fasthttp.RequestHeader) fasthttp.RequestConfig {
	noRelease := func() {}
	a := &admission{releaseUnverified: noRelease, releaseLarge: noRelease}
	read := fasthttp.RequestConfig{ReadTimeout: bodyTimeout, MaxRequestBodySize: maxUnauthenticated}
	var owner caller.Caller
	var rc requestContext
	if err := g.matchRoute(&rc, h); err == nil && !rc.needsAPIKey() {
		a.err = apierr.TooLarge.Because("a body that comes without an API key may have %d bytes", maxUnauthenticated)
	} else if owner, a.err = g.bodyOwner(h, a); a.err == nil {
		read.MaxRequestBodySize = maxSmall
		if length := h.ContentLength(); length == chunked || length > maxSmall {
			if a.releaseLarge, a.err = g.acquireLargeBody(owner.Tenant); a.err == nil {
				a.err = apierr.TooLarge.Because("a body may have %d bytes", rest.MaxBody)
				a.deadline = time.Now().Add(largeRequestTimeout)
				read = fasthttp.RequestConfig{ReadTimeout: largeBodyTimeout, MaxRequestBodySize: rest.MaxBody}
			}
		} else if length > maxUnqueued && !a.signatureUnverified {
			s := tenantSubject(queuedBodyLimit, owner.Tenant)
			if a.releaseLarge, a.err = g.Limiter.acquireWithRelease(context.Background(), s); a.err != nil {
				read.MaxRequestBodySize = maxUnauthenticated
			}
		}
	}
	// fasthttp does not tell when a client closes the connection within its body.
	a.timer = time.AfterFunc(read.ReadTimeout, func() {
		if g.admissions.CompareAndDelete(h, a) {
			a.release()
		}
	})
	g.admissions.Store(h, a)
	return read
}

// bodyOwner finds the caller that sends a large body, by the headers alone. A signature
// covers the body and cannot be verified before the body is read: the API key must exist, and only
// a few bodies of one key are read at a time, because the id of a key is no secret. Requests with a
// large body and a wrong key share one limit of their own, because the client's address is
// not known yet.
func (g *Gateway) bodyOwner(h *fasthttp.RequestHeader, a *admission) (caller.Caller, error) {
	isSAuthc1, text, err := parseAuthorization(h)
	if err != nil {
		return caller.Caller{}, err
	}
	ctx := context.Background()
	if !isSAuthc1 {
		var buffer [maxCredentials]byte
		credential, ok := parseBasic(buffer[:0], text)
		if !ok {
			return caller.Caller{}, errBasic
		}
		return g.apiKeys.authenticate(ctx, credential, subject{kind: wrongBodyKeyLimit})
	}
	s, ok := parseSignature(text)
	if !ok {
		return caller.Caller{}, errSignature
	}
	owner, err := g.apiKeys.findByID(ctx, s.keyID)
	if err != nil {
		return caller.Caller{}, err
	}
	a.signatureUnverified = true
	a.releaseUnverified, err = g.Limiter.acquireWithRelease(ctx, hashedSubject(signedBodyLimit, []byte(s.keyID)))
	return owner, err
}

// acquireLargeBody acquires the limits of a body of more than maxSmall. It returns
// apierr.TooMany where one of them is exhausted.
func (g *Gateway) acquireLargeBody(tenant id.ID) (release func(), err error) {
	ctx := context.Background()
	ofProcess, err := g.Limiter.acquireWithRelease(ctx, subject{kind: processBodyLimit})
	if err != nil {
		return func() {}, err
	}
	ofTenant, err := g.Limiter.acquireWithRelease(ctx, tenantSubject(bodyLimit, tenant))
	if err != nil {
		ofProcess()
		return func() {}, err
	}
	return func() { ofProcess(); ofTenant() }, nil
}

// queueBody is the middleware in which a large body waits for its turn. It returns
// apierr.TooMany where the queue is full or the turn does not come in bodyQueueTime. Only a few
// bodies of one tenant may wait: they take memory, and with it the processor time of garbage
// collections.
func (g *Gateway) queueBody(rc *requestContext) error {
	if len(rc.Request().Body()) <= maxUnqueued {
		return nil
	}
	if a := rc.admission; a != nil && a.signatureUnverified && a.deadline.IsZero() {
		s := tenantSubject(queuedBodyLimit, rc.caller.Tenant)
		if limit := g.Limiter.acquire(rc.ctx, s); limit != nil {
			return g.refusals.count(limit)
		}
		a.releaseLarge = func() { g.Limiter.release(s) }
	}
	ctx, cancel := context.WithTimeout(rc.ctx, bodyQueueTime)
	defer cancel()
	if g.bodyQueue.Acquire(ctx, rc.caller.Tenant) != nil {
		return g.refusals.count(tooMany(bodyLimit, Limit{InFlight: maxTenantBodies}))
	}
	rc.inBodyQueue = true
	return nil
}

// takeAdmission removes and returns the decision of admitBody about a request; nil where the
// body is small.
func (g *Gateway) takeAdmission(h *fasthttp.RequestHeader) *admission {
	stored, ok := g.admissions.LoadAndDelete(h)
	if !ok {
		return nil
	}
	a := stored.(*admission)
	a.timer.Stop()
	return a
}

// tooLargeError returns the error for a body that is larger than what the server reads.
func (g *Gateway) tooLargeError(h *fasthttp.RequestHeader) error {
	switch a := g.takeAdmission(h); {
	case a != nil:
		a.release()
		return a.err
	case isForm(h.ContentType()):
		return apierr.TooLarge.Because("a form may have %d bytes here", formLimit(h))
	}
	return apierr.TooLarge
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
