// Package dpop reads proofs of possession (DPoP; RFC 9449): which key a request proves, and for which request. That a
// proof is used once is a rule of services/oauth/openid, whose tokens are bound to the key.
package dpop

import (
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

	"github.com/doorward/doorward/pkg/apierr"
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

// MaxAge is the time after which a proof is not accepted any more, whatever its nonce: its id is kept for as long.
const MaxAge = 2 * nonceAge

// Algorithms are the algorithms of proofs: those of FAPI 2.0.
var Algorithms = []string{secure.ES256, secure.PS256, secure.EdDSA}

// ErrProof refuses a proof without telling which check has failed.
var ErrProof = refuse("invalid_dpop_proof", "the header DPoP must be one JWT with typ dpop+jwt, a public jwk, "+
	"a signature by it with ES256, PS256 or EdDSA, and jti, htm, htu, iat; it is used once")

func refuse(code, reason string, args ...any) error {
	return apierr.BadRequest.Because(reason, args...).With("error", code)
}

// Proof is a proof of possession whose signature is valid.
type Proof struct {
	JKT        string // thumbprint of its key
	ID         string // jti
	method     string
	address    string
	accessHash string
	nonce      *string
	issuedAt   time.Time
}

// Parse verifies the signature of the proofs of a request, which has one at most, with the key in its header, and
// returns its claims. It returns ErrProof for any other.
func Parse(proofs []string) (p Proof, err error) {
	if len(proofs) != 1 || len(proofs[0]) > maxProof {
		return p, ErrProof
	}
	text := secure.Secret(proofs[0])
	header, err := secure.UnverifiedHeader(text)
	if err != nil || header["typ"] != "dpop+jwt" {
		return p, ErrProof
	}
	algorithm, _ := header["alg"].(string)
	jwk, err := json.Marshal(header["jwk"])
	if err != nil || !slices.Contains(Algorithms, algorithm) {
		return p, ErrProof
	}
	key, err := secure.ParseVerificationKey(jwk)
	if err != nil {
		return p, ErrProof
	}
	claims, err := key.Verify(text, algorithm)
	if err != nil {
		return p, ErrProof
	}
	p.JKT = key.Thumbprint()
	p.ID, _ = claims["jti"].(string)
	p.method, _ = claims["htm"].(string)
	p.address, _ = claims["htu"].(string)
	p.accessHash, _ = claims["ath"].(string)
	if nonce, ok := claims["nonce"].(string); ok {
		p.nonce = &nonce
	}
	var hasIssued bool
	p.issuedAt, hasIssued = secure.NumericDate(claims, "iat")
	if p.ID == "" || p.method == "" || p.address == "" || !hasIssued {
		return p, ErrProof
	}
	return p, nil
}

// Request is the request that a proof goes with.
type Request struct {
	Method, Address string
	Access          secure.Secret // the access token; "": none
}

// Check refuses a proof of another request, or one whose time is off: that is asked for again with a nonce of the
// server (RFC 9449, section 8).
func (p Proof) Check(r Request, nonces Nonces, now time.Time) error {
	hash := sha256.Sum256([]byte(r.Access.Reveal()))
	switch {
	case p.method != r.Method || !sameAddress(p.address, r.Address):
		return refuse("invalid_dpop_proof", "htm or htu of the proof is not the method and the address of the request")
	case r.Access != "" && p.accessHash != base64.RawURLEncoding.EncodeToString(hash[:]):
		return refuse("invalid_dpop_proof", "ath of the proof is not the hash of the access token")
	case p.nonce != nil && !nonces.has(*p.nonce, now):
		return refuse("use_dpop_nonce", "the nonce of the proof is too old: use that of the header DPoP-Nonce")
	case p.nonce == nil && !within(p.issuedAt, now, proofAge):
		return refuse("use_dpop_nonce", "iat of the proof is more than %s from now: use the nonce of the header DPoP-Nonce",
			proofAge)
	case p.nonce != nil && !within(p.issuedAt, now, nonceAge):
		return refuse("invalid_dpop_proof", "iat of the proof is more than %s from now", nonceAge)
	}
	return nil
}

func within(t, now time.Time, distance time.Duration) bool {
	return !t.Before(now.Add(-distance)) && !t.After(now.Add(distance))
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

// Nonces makes nonces for proofs: a time with its MAC, which every process of the deployment verifies.
type Nonces struct{ Ring *secure.Keyring }

const noncePurpose = "oauth.dpopNonce"

// New returns a nonce.
func (n Nonces) New(now time.Time) string {
	_, key := n.Ring.Derive(noncePurpose)
	return nonceAt(key, now)
}

func nonceAt(key secure.Secret, at time.Time) string {
	text := binary.BigEndian.AppendUint64(nil, uint64(at.Unix()))
	mac := hmac.New(sha256.New, []byte(key))
	_, _ = mac.Write(text)
	return base64.RawURLEncoding.EncodeToString(mac.Sum(text))
}

func (n Nonces) has(nonce string, now time.Time) bool {
	text, err := base64.RawURLEncoding.DecodeString(nonce)
	if err != nil || len(text) != 8+sha256.Size {
		return false
	}
	at := time.Unix(int64(binary.BigEndian.Uint64(text)), 0)
	return within(at, now, nonceAge) && slices.ContainsFunc(n.Ring.DeriveAll(noncePurpose), func(key secure.Secret) bool {
		return hmac.Equal([]byte(nonceAt(key, at)), []byte(nonce))
	})
}
