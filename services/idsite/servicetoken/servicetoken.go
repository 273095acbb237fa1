// Package servicetoken signs the tokens (JWT) that only the idsite service verifies: the session tokens of
// pages, the states of logins at providers, and the signOn tokens of SAML. Their keys are derived from the
// tenant and the purpose of a token.
package servicetoken

import (
	"errors"

	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
)

// ErrInvalid is the error of Verify for a text that is no valid token.
var ErrInvalid = errors.New("the text is no token of this service and kind")

// Kind is what a token is for.
type Kind struct {
	Purpose string // of the keys, which have the tenant besides
	STT     string // the header stt; "": none
	ID      string // the claim with the id of what the token is about
}

func (k Kind) purpose(tenant id.ID) string { return k.Purpose + "/" + tenant.String() }

// Sign signs the claims of a token of a tenant.
func (k Kind) Sign(ring *secure.Keyring, tenant id.ID, claims secure.Claims) (secure.Secret, error) {
	keyID, key := ring.Derive(k.purpose(tenant))
	header := map[string]any{"typ": "JWT", "kid": keyID, "tid": tenant.String()}
	if k.STT != "" {
		header["stt"] = k.STT
	}
	token, err := secure.SignJWT(header, claims, key)
	return secure.Secret(token), err
}

// Verified is a token that was verified: its tenant with the id that it is about, and all claims.
type Verified struct {
	About  id.Ref
	Claims secure.Claims
}

// Verify verifies a token of Sign. It returns ErrInvalid for any other text, and for a token of another kind.
func (k Kind) Verify(ring *secure.Keyring, token secure.Secret) (v Verified, err error) {
	keyOf := func(header map[string]any, _ secure.Claims) (secure.Secret, error) {
		name, _ := header["tid"].(string)
		tenant, err := id.Parse(name)
		if stt, _ := header["stt"].(string); err != nil || stt != k.STT {
			return "", ErrInvalid
		}
		v.About.Tenant = tenant
		keyID, _ := header["kid"].(string)
		return ring.Derived(keyID, k.purpose(tenant))
	}
	if _, v.Claims, err = secure.ParseJWT(token.Reveal(), keyOf); err != nil {
		return Verified{}, ErrInvalid
	}
	name, _ := v.Claims[k.ID].(string)
	if v.About.ID, err = id.Parse(name); err != nil {
		return Verified{}, ErrInvalid
	}
	return v, nil
}
