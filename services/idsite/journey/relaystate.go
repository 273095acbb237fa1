package journey

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"

	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/idsite/servicetoken"
	"github.com/doorward/doorward/services/idsite/store"
)

// The RelayState that this service sends to a SAML identity provider, and gets back with the response. SAML
// allows 80 bytes (SAML 2.0 bindings, sections 3.4.3 and 3.5.3), and some providers refuse more: it is a
// handle that names the flow, where everything about the login is stored once, and an HMAC. The default
// RelayState of a login that the identity provider begins is another (services/application/saml/relaystate.go).

// relayPurpose is what a RelayState is for.
type relayPurpose byte

const (
	relayLogin       relayPurpose = iota + 1 // a login that a token or the Client API began
	relayHostedLogin                         // a login that a hosted page began
	relayLogout                              // a single logout (SLO)
)

const (
	relayNonceLength = 6
	relayMACLength   = 16
	// relayHeadLength is the length of what the HMAC covers: purpose, tenant, flow and nonce.
	relayHeadLength = 1 + len(id.ID{}) + len(id.ID{}) + relayNonceLength
)

// relayKeyPurpose is the purpose for which the key of a tenant's handles is derived.
func relayKeyPurpose(tenant id.ID) string { return "idsite.relayhandle/" + tenant.String() }

// newRelayState returns the RelayState of a flow for the identity provider of a directory: 74 characters
// that need no escape in a URL. Each is another, also those of one flow.
func (j *Journey) newRelayState(f store.Flow, purpose relayPurpose, directory id.ID) secure.Secret {
	head := make([]byte, 0, relayHeadLength+relayMACLength)
	head = append(head, byte(purpose))
	head = append(head, f.TenantID[:]...)
	head = append(head, f.ID[:]...)
	head = head[:relayHeadLength]
	_, _ = rand.Read(head[relayHeadLength-relayNonceLength:]) // never fails
	_, key := j.ring.Derive(relayKeyPurpose(f.TenantID))
	return secure.Secret(base64.RawURLEncoding.EncodeToString(append(head, relayMAC(key, head, directory)...)))
}

// relayMAC returns the HMAC of a handle. It covers the directory, although the handle does not have it: at
// the address of another directory the handle is none.
func relayMAC(key secure.Secret, head []byte, directory id.ID) []byte {
	mac := hmac.New(sha256.New, []byte(key.Reveal()))
	mac.Write(head)
	mac.Write(directory[:])
	return mac.Sum(nil)[:relayMACLength]
}

// samlRequestID returns the id of the AuthnRequest that has a RelayState. The response must name it in
// InResponseTo, so that a response of another login cannot come with this RelayState.
func samlRequestID(relay secure.Secret) string { return "_" + relay.Reveal() }

// readRelayHandle returns the flow of a RelayState of newRelayState, and its purpose. It returns
// servicetoken.ErrInvalid for any other text, and for the directory of another login; apierr.NotFound where the
// flow was purged.
func (j *Journey) readRelayHandle(ctx context.Context, relay secure.Secret,
	directory id.ID) (relayPurpose, store.Flow, error) {
	text, err := base64.RawURLEncoding.Strict().DecodeString(relay.Reveal())
	if err != nil || len(text) != relayHeadLength+relayMACLength {
		return 0, store.Flow{}, servicetoken.ErrInvalid
	}
	head, tenant, flow := text[:relayHeadLength], id.ID(text[1:17]), id.ID(text[17:33])
	for _, key := range j.ring.DeriveAll(relayKeyPurpose(tenant)) {
		if hmac.Equal(relayMAC(key, head, directory), text[relayHeadLength:]) {
			f, err := j.store.Flow(caller.WithTenant(ctx, tenant), tenant, flow)
			return relayPurpose(head[0]), f, err
		}
	}
	return 0, store.Flow{}, servicetoken.ErrInvalid
}
