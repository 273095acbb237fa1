package gateway

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"net/netip"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/caller"
)

// maxCredentials bounds the Base64 of a key id and its secret.
const maxCredentials = 1 << 10

// authenticate finds out who asks. Under /v1 a path that does not exist needs a
// key too, so that a stranger cannot tell which do.
func (g *Gateway) authenticate(x *exchange) error {
	if x.managed && (x.route == nil || x.route.access == byKey) {
		who, err := g.keys.check(x.ctx, &x.Request().Header, x.address)
		if err != nil {
			return g.refused.because(err)
		}
		x.caller = who
	}
	address, err := g.userAddress(x)
	if err != nil {
		return err
	}
	x.caller.Address, x.caller.RequestID = address, caller.From(x.ctx).RequestID
	x.signed = g.cfg.Common.Signer.Sign(x.caller)
	return nil
}

// check reads the Authorization header. The scheme says who judges it: Basic is
// the only one so far.
func (k *keys) check(ctx context.Context, h *fasthttp.RequestHeader, from netip.Addr) (caller.Caller, error) {
	values := h.PeekAll(fiber.HeaderAuthorization)
	switch len(values) {
	case 0:
		return caller.Caller{}, apierr.Unauthorized.Because("send the id and secret of an API key in the Authorization header")
	case 1:
	default:
		return caller.Caller{}, apierr.BadRequest.Because("there is more than one Authorization header")
	}
	scheme, rest, _ := bytes.Cut(values[0], []byte{' '})
	if !bytes.EqualFold(scheme, []byte("Basic")) {
		return caller.Caller{}, apierr.Unauthorized.Because("the authentication scheme is not supported; use Basic")
	}
	var buffer [maxCredentials]byte
	credential, ok := parseBasic(buffer[:0], rest)
	if !ok {
		return caller.Caller{}, apierr.Unauthorized.Because("the credentials are not the Base64 of an API key's id, a colon and its secret")
	}
	return k.authenticate(ctx, credential, from)
}

// credential is a key id and a secret as they were sent.
type credential struct {
	id, secret []byte
	digest     [sha256.Size]byte // of both, with their colon
}

// parseBasic reads what follows the scheme (RFC 7617) into buffer.
func parseBasic(buffer, encoded []byte) (credential, bool) {
	encoded = bytes.Trim(encoded, " ")
	if len(encoded) > maxCredentials {
		return credential{}, false
	}
	plain, err := base64.StdEncoding.AppendDecode(buffer, encoded)
	if err != nil {
		return credential{}, false
	}
	id, secret, colon := bytes.Cut(plain, []byte{':'})
	if !colon || len(id) == 0 || len(secret) == 0 {
		return credential{}, false
	}
	for _, b := range id {
		if b <= ' ' || b >= 0x7f { // no id of ours, and nothing to ask a database for
			return credential{}, false
		}
	}
	return credential{id, secret, sha256.Sum256(plain)}, true
}
