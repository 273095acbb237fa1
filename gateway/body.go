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

// The URL limit, the body limits (http.MaxBytesReader elsewhere) and the timeouts of a request
// (docs/interface/limits.md#request-size).
const (
	maxURL  = 16 << 10
	maxForm = 64 << 10
	// maxUnauthenticated is the largest body that is read before the client has
	// shown a good API key, and so the largest of those that come without one.
	maxUnauthenticated = 64 << 10
	// maxSmall is the largest body of which a tenant may send any number at a
	// time. Larger ones are admitted a few at a time: a text of 10 MB takes
	// several times its size in memory while it is read, checked and stored.
	maxSmall = 1 << 20

	// maxUnqueued is the largest body that is forwarded at once. Larger ones take turns
	// by tenant: what they take to check and to store is the processor's time.
	maxUnqueued     = 128 << 10
	maxBodies       = 2               // of more than maxUnqueued that this process forwards at a time
	maxTenantBodies = 1               // the same of one tenant
	maxBodyQueue    = 32              // that wait for their turn
	maxTenantQueue  = 8               // of one tenant that are read, wait or are forwarded at a time
	bodyQueueTime   = 5 * time.Second // for which each waits

	// maxHeaders is the header limit (MaxHeaderBytes of net/http). It is less than what a
	// service reads, which gets more headers.
	maxHeaders = 38 << 10

	maxLargeBodies       = 6 // at a time in this process
	maxTenantLargeBodies = 2 // at a time of one tenant
	maxSignedBodies      = 8 // at a time of one key, while their signature is not checked

	// idleTimeout is longer than the 90 s or less for which clients keep a
	// connection: one that the server closes may just be taken for a request.
	idleTimeout      = 2 * time.Minute  // for the first byte of a request
	headerTimeout    = 10 * time.Second // for a TLS handshake, and again for the headers
	bodyTimeout      = time.Minute      // for headers and body
	largeBodyTimeout = 15 * time.Second // for a body of more than maxSmall
	writeTimeout     = time.Minute      // for a client to take its answer

	// largeRequestTimeout bounds a request with a body of more than maxSmall,
	// from its headers to its answer.
	largeRequestTimeout = 19 * time.Second
)

// admission is what admission control decided about a large body by the headers of
// its request.
type admission struct {
	err             error     // refuses a body that is larger than what is read
	unauthenticated bool      // signed: the signature is checked after the body
	deadline        time.Time // of the whole request; zero for a body of at most maxSmall
	signed          func()    // releases what is held until the signature is checked
	large           func()    // releases what is held until the answer
	timer           *time.Timer
}

func (a *admission) release() {
	a.signed()
	a.large()
}

// readLimits bounds what the server reads and for how long.
func (g *Gateway) readLimits(server *fasthttp.Server) {
	server.IdleTimeout, server.ReadTimeout, server.WriteTimeout = idleTimeout, headerTimeout, writeTimeout
	server.ReadBufferSize = maxHeaders
	server.SecureErrorLogMessage = true // else errors quote headers
	server.CloseOnShutdown = true
	known := g.HTTP.Config().RequestMethods
	server.HeaderReceived = func(h *fasthttp.RequestHeader) fasthttp.RequestConfig {
		if !slices.Contains(known, string(h.Method())) {
			h.SetMethod(fiber.MethodPut) // which no path of the product offers: 405, or 401, 403 and 404 before it
		}
		if a := g.takeAdmission(h); a != nil { // of the request before, whose memory this one uses
			a.release()
		}
		switch announced := h.ContentLength(); {
		case isForm(h.ContentType()):
			return fasthttp.RequestConfig{ReadTimeout: bodyTimeout, MaxRequestBodySize: maxForm}
		case announced != inChunks && announced <= maxUnauthenticated:
			return fasthttp.RequestConfig{ReadTimeout: bodyTimeout, MaxRequestBodySize: maxUnauthenticated}
		}
		return g.admitBody(h)
	}
}

// inChunks is the announced length of a body in chunks.
const inChunks = -1

// admitBody decides by the headers of a request how much of its body is read:
// little without a good key, or where none is asked for, maxSmall with one, and more where the tenant and
// the process have few such bodies.
func (g *Gateway) admitBody(h *fasthttp.RequestHeader) fasthttp.RequestConfig {
	nothing := func() {}
	a := &admission{signed: nothing, large: nothing}
	read := fasthttp.RequestConfig{ReadTimeout: bodyTimeout, MaxRequestBodySize: maxUnauthenticated}
	var owner caller.Caller
	var to exchange
	if err := g.find(&to, h); err == nil && !to.needsKey() {
		a.err = apierr.TooLarge.Because("a body that comes without an API key may have %d bytes", maxUnauthenticated)
	} else if owner, a.err = g.bodyOwner(h, a); a.err == nil {
		read.MaxRequestBodySize = maxSmall
		if announced := h.ContentLength(); announced == inChunks || announced > maxSmall {
			if a.large, a.err = g.holdLarge(owner.Tenant); a.err == nil {
				a.err = apierr.TooLarge.Because("a body may have %d bytes", rest.MaxBody)
				a.deadline = time.Now().Add(largeRequestTimeout)
				read = fasthttp.RequestConfig{ReadTimeout: largeBodyTimeout, MaxRequestBodySize: rest.MaxBody}
			}
		} else if announced > maxUnqueued && !a.unauthenticated {
			if a.large, a.err = g.Limits.hold(context.Background(), tenantSubject(queuedBodyLimit, owner.Tenant)); a.err != nil {
				read.MaxRequestBodySize = maxUnauthenticated
			}
		}
	}
	// Nothing else says that a client went away within its body.
	a.timer = time.AfterFunc(read.ReadTimeout, func() {
		if g.admissions.CompareAndDelete(h, a) {
			a.release()
		}
	})
	g.admissions.Store(h, a)
	return read
}

// bodyOwner finds the caller that sends a large body by the headers alone. A signature
// covers the body and cannot be checked before it: the key must exist, and has
// only a few bodies read at a time, for its id is no secret. Wrong keys that
// announce large bodies have limits of their own: the client's address is not
// known yet, and all of them share one.
func (g *Gateway) bodyOwner(h *fasthttp.RequestHeader, a *admission) (caller.Caller, error) {
	signed, text, err := authorization(h)
	if err != nil {
		return caller.Caller{}, err
	}
	ctx := context.Background()
	if !signed {
		var buffer [maxCredentials]byte
		credential, ok := parseBasic(buffer[:0], text)
		if !ok {
			return caller.Caller{}, errBasic
		}
		return g.keys.authenticate(ctx, credential, subject{kind: wrongBodyKeyLimit})
	}
	s, ok := parseSignature(text)
	if !ok {
		return caller.Caller{}, errSignature
	}
	owner, err := g.keys.exists(ctx, s.key)
	if err != nil {
		return caller.Caller{}, err
	}
	a.unauthenticated = true
	a.signed, err = g.Limits.hold(ctx, textSubject(signedBodyLimit, []byte(s.key)))
	return owner, err
}

// holdLarge counts a body of more than maxSmall in, or refuses it with
// apierr.TooMany.
func (g *Gateway) holdLarge(tenant id.ID) (release func(), err error) {
	ctx := context.Background()
	ofProcess, err := g.Limits.hold(ctx, subject{kind: processBodyLimit})
	if err != nil {
		return func() {}, err
	}
	ofTenant, err := g.Limits.hold(ctx, tenantSubject(bodyLimit, tenant))
	if err != nil {
		ofProcess()
		return func() {}, err
	}
	return func() { ofProcess(); ofTenant() }, nil
}

// queueBody waits for the turn of a large body. It refuses one for which there is no
// room, or whose turn does not come. A tenant has few that wait: they take memory, and
// with it the processor time of garbage collections.
func (g *Gateway) queueBody(x *exchange) error {
	if len(x.Request().Body()) <= maxUnqueued {
		return nil
	}
	if a := x.admission; a != nil && a.unauthenticated && a.deadline.IsZero() {
		s := tenantSubject(queuedBodyLimit, x.caller.Tenant)
		if limit := g.Limits.acquire(x.ctx, s); limit != nil {
			return g.refusals.count(limit)
		}
		a.large = func() { g.Limits.release(s) }
	}
	ctx, cancel := context.WithTimeout(x.ctx, bodyQueueTime)
	defer cancel()
	if g.bodies.Acquire(ctx, x.caller.Tenant) != nil {
		return g.refusals.count(tooMany(bodyLimit, Budget{InFlight: maxTenantBodies}))
	}
	x.queued = true
	return nil
}

// takeAdmission returns what was decided about the body of a request; nil where
// the body is small.
func (g *Gateway) takeAdmission(h *fasthttp.RequestHeader) *admission {
	found, ok := g.admissions.LoadAndDelete(h)
	if !ok {
		return nil
	}
	a := found.(*admission)
	a.timer.Stop()
	return a
}

// tooLarge refuses a body of which no more was read.
func (g *Gateway) tooLarge(h *fasthttp.RequestHeader) error {
	switch a := g.takeAdmission(h); {
	case a != nil:
		a.release()
		return a.err
	case isForm(h.ContentType()):
		return apierr.TooLarge.Because("a form may have %d bytes", maxForm)
	}
	return apierr.TooLarge
}

func isForm(contentType []byte) bool {
	kind, _, _ := bytes.Cut(contentType, []byte{';'})
	return bytes.EqualFold(bytes.TrimSpace(kind), []byte(fiber.MIMEApplicationForm))
}
