package gateway

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"strings"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/id"
)

// maxCredentials bounds the Base64 of a key id and its secret.
const maxCredentials = 1 << 10

// authenticate is the middleware that verifies the API key of a request and signs its caller for
// the services. apikeycache.go asks the OAuth service for the key and caches the answer.
func (g *Gateway) authenticate(rc *requestContext) error {
	if rc.needsAPIKey() {
		found, err := g.findCaller(rc)
		if err != nil {
			return g.refusals.count(err)
		}
		if directoryapi.IsAgentKey(found.Key) && !rc.isAgentRoute(found.Key) {
			return g.refusals.count(errAgentKey)
		}
		if err := g.checkTenant(rc, found.Tenant); err != nil {
			return err
		}
		rc.caller = found
		rc.caller.Ended = g.apiKeys.endings.of(found.Tenant)
	}
	address, err := g.userAddress(rc)
	if err != nil {
		return err
	}
	rc.caller.Address, rc.caller.RequestID = address, caller.From(rc.ctx).RequestID
	rc.caller.AcceptLanguage = string(firstLanguages(rc.Request().Header.Peek(fiber.HeaderAcceptLanguage)))
	rc.signedCaller = g.cfg.Common.Signer.Sign(rc.caller)
	return nil
}

// checkTenant refuses the keys of a suspended tenant. The token endpoint has a form of errors of its own (RFC 6749,
// section 5.2).
func (g *Gateway) checkTenant(rc *requestContext, tenant id.ID) error {
	err := g.cfg.Tenants.Check(rc.ctx, tenant)
	if errors.Is(err, apierr.NotFound) {
		err = errInvalidKey
	}
	if errors.Is(err, apierr.TenantSuspended) && rc.route != nil && strings.Contains(rc.route.pattern, "/oauth/") {
		err = apierr.From(err).With("error", "access_denied")
	}
	return g.refusals.count(err)
}

// firstLanguages returns those languages of a header Accept-Language that fit into a Caller: a browser
// sends them in the order of preference.
func firstLanguages(accept []byte) []byte {
	if len(accept) <= caller.MaxAcceptLanguage {
		return accept
	}
	return accept[:max(bytes.LastIndexByte(accept[:caller.MaxAcceptLanguage], ','), 0)]
}

// errAgentKey refuses the API key of an LDAP agent on a path other than those of the agent itself.
var errAgentKey = apierr.Unauthorized.Because("the key of an agent is good for the calls of this agent alone")

// isAgentRoute reports whether the path belongs to the LDAP agent whose API key is given.
func (rc *requestContext) isAgentRoute(key string) bool {
	agent, ok := directoryapi.AgentOfKey(key)
	if !ok || rc.route == nil || !rc.route.agentKeys {
		return false
	}
	path := bytes.TrimPrefix(rc.target[:rc.pathLength], []byte("/v1/agents/"))
	name, _, _ := bytes.Cut(path, []byte{'/'})
	return string(name) == agent.ID.String()
}

// findCaller returns the caller whose API key a request carries.
func (g *Gateway) findCaller(rc *requestContext) (caller.Caller, error) {
	isSAuthc1, text, err := parseAuthorization(&rc.Request().Header)
	if err != nil {
		return caller.Caller{}, err
	}
	if isSAuthc1 {
		s, ok := parseSignature(text)
		if !ok {
			return caller.Caller{}, errSignature
		}
		if err := g.readSignedBody(rc, s.keyID); err != nil {
			return caller.Caller{}, err
		}
		verification, ok := s.verificationRequest(rc.Request(), g.dateHeaderNames)
		if !ok {
			return caller.Caller{}, errSignature
		}
		return g.apiKeys.verifySignature(rc.ctx, verification, addressSubject(signerLimit, rc.address))
	}
	var buffer [maxCredentials]byte
	credential, ok := parseBasic(buffer[:0], text)
	if !ok {
		return caller.Caller{}, errBasic
	}
	return g.apiKeys.authenticate(rc.ctx, credential, addressSubject(wrongKeyLimit, rc.address))
}

var (
	errInvalidKey = apierr.Unauthorized.Because("the API key in the header Authorization is not accepted: its id or " +
		"secret is wrong, it is disabled, or its account is no enabled administrator of the tenant")
	errBasic = apierr.Unauthorized.Because(
		"the header Authorization needs, behind the word Basic, the Base64 of an API key's id, a colon and its secret")
	errSignature = apierr.Unauthorized.Because("a signature in the header Authorization needs sauthc1Id, " +
		"sauthc1SignedHeaders with host and the header of the time, all of which the request has, and " +
		"sauthc1Signature; the date in the id is that of the time")
)

// parseAuthorization splits the header Authorization into its scheme, Basic or SAuthc1, and the
// text behind the scheme.
func parseAuthorization(h *fasthttp.RequestHeader) (isSAuthc1 bool, text []byte, err error) {
	values := h.PeekAll(fiber.HeaderAuthorization)
	switch len(values) {
	case 0:
		return false, nil, apierr.Unauthorized.Because(
			"send the id and secret of an API key in the header Authorization, as Basic or SAuthc1")
	case 1:
	default:
		return false, nil, apierr.BadRequest.Because("there is more than one header Authorization; send one")
	}
	scheme, text, _ := bytes.Cut(values[0], []byte{' '})
	isSAuthc1 = bytes.EqualFold(scheme, []byte("SAuthc1"))
	if !isSAuthc1 && !bytes.EqualFold(scheme, []byte("Basic")) {
		return false, nil, apierr.Unauthorized.Because(
			"the scheme of the header Authorization is not supported; use Basic or SAuthc1")
	}
	return isSAuthc1, text, nil
}

// credential is the id and the secret of an API key as the client sent them.
type credential struct {
	id, secret []byte
	hash       [sha256.Size]byte // SHA-256 of id:secret
}

// parseBasic decodes the credential of HTTP Basic authentication (RFC 7617) into buffer.
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
		if b <= ' ' || b >= 0x7f { // no API key has such an id
			return credential{}, false
		}
	}
	return credential{id, secret, sha256.Sum256(plain)}, true
}
