package gateway

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"net/netip"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/caller"
)

// maxCredentials bounds the Base64 of a key id and its secret.
const maxCredentials = 1 << 10

// authenticate verifies the API key and finds the caller.
func (g *Gateway) authenticate(x *exchange) error {
	if x.admission != nil {
		defer x.admission.signed()
	}
	if x.needsKey() {
		found, err := g.findCaller(x.ctx, x.Request(), x.address)
		if err != nil {
			return g.refusals.count(err)
		}
		if directoryapi.IsAgentKey(found.Key) && !x.isOfAgent(found.Key) {
			return g.refusals.count(errAgentKey)
		}
		x.caller = found
	}
	address, err := g.userAddress(x)
	if err != nil {
		return err
	}
	x.caller.Address, x.caller.RequestID = address, caller.From(x.ctx).RequestID
	x.signed = g.cfg.Common.Signer.Sign(x.caller)
	return nil
}

// errAgentKey refuses the key of an agent anywhere but at that agent.
var errAgentKey = apierr.Unauthorized.Because("the key of an agent is good for the calls of this agent alone")

// isOfAgent reports whether a request is one of the calls of the agent of a key.
func (x *exchange) isOfAgent(key string) bool {
	agent, ok := directoryapi.AgentOfKey(key)
	if !ok || x.route == nil || !x.route.agents {
		return false
	}
	path := bytes.TrimPrefix(x.target[:x.path], []byte("/v1/agents/"))
	name, _, _ := bytes.Cut(path, []byte{'/'})
	return string(name) == agent.ID.String()
}

// findCaller returns whose key a request carries.
func (g *Gateway) findCaller(ctx context.Context, request *fasthttp.Request, from netip.Addr) (caller.Caller, error) {
	signed, text, err := authorization(&request.Header)
	if err != nil {
		return caller.Caller{}, err
	}
	if signed {
		d, ok := parseSignature(text)
		if !ok {
			return caller.Caller{}, errSignature
		}
		question, ok := d.question(request, g.dates)
		if !ok {
			return caller.Caller{}, errSignature
		}
		return g.keys.verify(ctx, question, addressSubject(signerLimit, from))
	}
	var buffer [maxCredentials]byte
	credential, ok := parseBasic(buffer[:0], text)
	if !ok {
		return caller.Caller{}, errBasic
	}
	return g.keys.authenticate(ctx, credential, addressSubject(wrongKeyLimit, from))
}

var (
	errKey = apierr.Unauthorized.Because("the API key in the header Authorization is not accepted: its id or secret is wrong, " +
		"it is disabled, or its account is no enabled administrator of the tenant")
	errBasic = apierr.Unauthorized.Because(
		"the header Authorization needs, behind the word Basic, the Base64 of an API key's id, a colon and its secret")
	errSignature = apierr.Unauthorized.Because("a signature in the header Authorization needs sauthc1Id, " +
		"sauthc1SignedHeaders with host and the header of the time, all of which the request has, and " +
		"sauthc1Signature; the date in the id is that of the time")
)

// authorization reads the Authorization header up to its scheme, Basic or
// SAuthc1.
func authorization(h *fasthttp.RequestHeader) (signed bool, text []byte, err error) {
	values := h.PeekAll(fiber.HeaderAuthorization)
	switch len(values) {
	case 0:
		return false, nil, apierr.Unauthorized.Because("send the id and secret of an API key in the header Authorization, as Basic or SAuthc1")
	case 1:
	default:
		return false, nil, apierr.BadRequest.Because("there is more than one header Authorization; send one")
	}
	scheme, text, _ := bytes.Cut(values[0], []byte{' '})
	signed = bytes.EqualFold(scheme, []byte("SAuthc1"))
	if !signed && !bytes.EqualFold(scheme, []byte("Basic")) {
		return false, nil, apierr.Unauthorized.Because("the scheme of the header Authorization is not supported; use Basic or SAuthc1")
	}
	return signed, text, nil
}

// credential is a key id and a secret as they were sent.
type credential struct {
	id, secret []byte
	hash       [sha256.Size]byte // of both, with their colon
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
