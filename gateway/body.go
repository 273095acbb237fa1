package gateway

import (
	"context"
	"net/netip"
	"sync"
	"time"

	"github.com/valyala/fasthttp"
)

// lend decides by the headers of a request with a large body whether the body
// is read. Who sends a secret shows it first. A signature covers the body, so it
// cannot be checked before: the body is read for a key that is good, but only so
// many at a time, for who knows a key's id need not have its secret.
func (g *Gateway) admitBody(h *fasthttp.RequestHeader) error {
	if _, lent := g.admissions.Load(h); lent {
		return nil
	}
	signed, text, err := authorization(h)
	if err != nil {
		return err
	}
	ctx, nobody := context.Background(), netip.Addr{} // strangers with large bodies share one address
	if !signed {
		var buffer [maxCredentials]byte
		credential, ok := parseBasic(buffer[:0], text)
		if !ok {
			return errBasic
		}
		_, err = g.keys.authenticate(ctx, credential, nobody)
		return err
	}
	d, ok := parseSignature(text)
	if !ok {
		return errSignature
	}
	if err := g.keys.known(ctx, d.key, nobody); err != nil {
		return err
	}
	who := textSubject(signedBodyLimit, []byte(d.key))
	if limit := g.Limits.enter(ctx, who); limit != nil {
		return limit
	}
	back := sync.OnceFunc(func() { g.Limits.leave(who) })
	time.AfterFunc(bodyTimeout, back) // where the client went away, nobody else does
	g.admissions.Store(h, back)
	return nil
}

// repay ends what lend counted for a request, if it did.
func (g *Gateway) releaseBody(h *fasthttp.RequestHeader) {
	if back, lent := g.admissions.LoadAndDelete(h); lent {
		back.(func())()
	}
}
