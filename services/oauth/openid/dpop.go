package openid

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/doorward/doorward/pkg/secure"
)

const (
	// proofAge is how far the iat of a proof may be from now, before or after.
	proofAge = time.Minute
	// nonceAge is how long a nonce is accepted. A proof with one may have an iat that is as far from now: the clock of
	// the client is wrong then, and the nonce says that the proof is fresh.
	nonceAge = 5 * time.Minute
	maxProof = 8 << 10 // bytes
)

// proofAlgorithms are the algorithms of proofs: those of FAPI 2.0.
var proofAlgorithms = []string{secure.ES256, secure.PS256, secure.EdDSA}

// checkProof verifies the proof of possession of a call (DPoP; RFC 9449, section 4.3) and returns the thumbprint of
// its key, or the empty string where there is no proof. access is the access token that the proof goes with; empty:
// none. A proof whose time is off is asked for again with a nonce.
func (s *Service) checkProof(ctx context.Context, i issuer, in Call, access secure.Secret) (jkt string, err error) {
	if len(in.Proofs) == 0 {
		return "", nil
	}
	if len(in.Proofs) > 1 || len(in.Proofs[0]) > maxProof {
		return "", errProof
	}
	p, err := parseProof(secure.Secret(in.Proofs[0]))
	if err != nil {
		return "", err
	}
	now := s.Now()
	hash := sha256.Sum256([]byte(access.Reveal()))
	switch {
	case p.method != in.Method || !sameAddress(p.address, i.url+in.Endpoint):
		return "", refuse("invalid_dpop_proof", "htm or htu of the proof is not the method and the address of the request")
	case access != "" && p.accessHash != base64.RawURLEncoding.EncodeToString(hash[:]):
		return "", refuse("invalid_dpop_proof", "ath of the proof is not the hash of the access token")
	case p.nonce != nil && !s.isNonce(*p.nonce, now):
		return "", refuse("use_dpop_nonce", "the nonce of the proof is too old: use that of the header DPoP-Nonce")
	case p.nonce == nil && !within(p.issuedAt, now, proofAge):
		return "", refuse("use_dpop_nonce",
			"iat of the proof is more than %s from now: use the nonce of the header DPoP-Nonce", proofAge)
	case p.nonce != nil && !within(p.issuedAt, now, nonceAge):
		return "", refuse("invalid_dpop_proof", "iat of the proof is more than %s from now", nonceAge)
	}
	return p.jkt, s.useOnce(ctx, i.app.TenantID, "DPoP proof "+p.jkt+" "+p.id, now.Add(2*nonceAge), errProof)
}

// errProof refuses a proof.
var errProof = refuse("invalid_dpop_proof",
	"the header DPoP must be one JWT with typ dpop+jwt, a public jwk, a signature by it with ES256, "+
		"PS256 or EdDSA, and jti, htm, htu, iat; it is used once")

func within(t, now time.Time, distance time.Duration) bool {
	return !t.Before(now.Add(-distance)) && !t.After(now.Add(distance))
}

// proof is a proof of possession whose signature is valid.
type proof struct {
	jkt, id, method, address, accessHash string
	nonce                                *string
	issuedAt                             time.Time
}

// parseProof verifies the signature of a proof with the key in its header, and returns its claims.
func parseProof(text secure.Secret) (p proof, err error) {
	header, err := secure.UnverifiedHeader(text)
	if err != nil || header["typ"] != "dpop+jwt" {
		return p, errProof
	}
	algorithm, _ := header["alg"].(string)
	jwk, err := json.Marshal(header["jwk"])
	if err != nil || !slices.Contains(proofAlgorithms, algorithm) {
		return p, errProof
	}
	key, err := secure.ParseVerificationKey(jwk)
	if err != nil {
		return p, errProof
	}
	claims, err := key.Verify(text, algorithm)
	if err != nil {
		return p, errProof
	}
	p.jkt = key.Thumbprint()
	p.id, _ = claims["jti"].(string)
	p.method, _ = claims["htm"].(string)
	p.address, _ = claims["htu"].(string)
	p.accessHash, _ = claims["ath"].(string)
	if nonce, ok := claims["nonce"].(string); ok {
		p.nonce = &nonce
	}
	var hasIssued bool
	p.issuedAt, hasIssued = numericDate(claims, "iat")
	if p.id == "" || p.method == "" || p.address == "" || !hasIssued {
		return p, errProof
	}
	return p, nil
}

// sameAddress reports whether an address is that of the endpoint: scheme and host in any letter case, with or without
// the default port, without query and fragment (RFC 9449, section 4.3).
func sameAddress(given, endpoint string) bool {
	a, err := url.Parse(given)
	b, wrong := url.Parse(endpoint)
	return err == nil && wrong == nil && a.User == nil && a.Opaque == "" && strings.EqualFold(a.Scheme, b.Scheme) &&
		strings.EqualFold(hostWithPort(a), hostWithPort(b)) && a.EscapedPath() == b.EscapedPath()
}

func hostWithPort(u *url.URL) string {
	if u.Port() != "" {
		return u.Host
	}
	return net.JoinHostPort(u.Hostname(), map[string]string{"https": "443", "http": "80"}[strings.ToLower(u.Scheme)])
}

const noncePurpose = "oauth.dpopNonce"

// Nonce returns a nonce for proofs: a time with its MAC, which every process of the deployment verifies.
func (s *Service) Nonce() string {
	_, key := s.Ring.Derive(noncePurpose)
	return nonceAt(key, s.Now())
}

func nonceAt(key secure.Secret, at time.Time) string {
	text := binary.BigEndian.AppendUint64(nil, uint64(at.Unix()))
	mac := hmac.New(sha256.New, []byte(key))
	_, _ = mac.Write(text)
	return base64.RawURLEncoding.EncodeToString(mac.Sum(text))
}

func (s *Service) isNonce(nonce string, now time.Time) bool {
	text, err := base64.RawURLEncoding.DecodeString(nonce)
	if err != nil || len(text) != 8+sha256.Size {
		return false
	}
	at := time.Unix(int64(binary.BigEndian.Uint64(text)), 0)
	return within(at, now, nonceAge) && slices.ContainsFunc(s.Ring.DeriveAll(noncePurpose), func(key secure.Secret) bool {
		return hmac.Equal([]byte(nonceAt(key, at)), []byte(nonce))
	})
}
