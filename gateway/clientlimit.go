package gateway

import (
	"crypto/sha256"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/doorward/doorward/gateway/clientcredential"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/id"
)

// openIDClients are the clients of OpenID providers that the OAuth service has found behind credentials.
type openIDClients = lru.Cache[[sha256.Size]byte, id.Ref]

// limitClient counts a call to an endpoint of an OpenID provider (docs/interface/limits.md#openid-clients). One whose
// credential was valid before counts for its client and the tenant, wherever it comes from: many clients behind one
// address do not throttle each other, and wrong secrets for a client do not keep that out. Any other credential counts
// for the client that it names at this address, and for the address, and keeps counting for rejectedTTL where it is
// wrong. A call without a credential counts for the address. The credential may be in the form, which is read first.
func (g *Gateway) limitClient(rc *requestContext) error {
	if err := g.limitBody(rc, id.ID{}); err != nil {
		return err
	}
	if err := g.readBody(rc); err != nil {
		return err
	}
	ofAddress := addressSubject(unverifiedLimit, rc.address)
	if rc.credential, rc.hasCredential = clientcredential.Of(rc.Request(), ofAddress.id); !rc.hasCredential {
		return g.acquireLimits(rc, addressSubject(addressLimit, rc.address))
	}
	if client, known := g.clients.Get(rc.credential.Key); known {
		ofClient := hashedSubject(clientLimit, append(client.Tenant[:], client.ID[:]...))
		return g.acquireLimits(rc, ofClient, tenantSubject(userLimit, client.Tenant))
	}
	named := hashedSubject(unverifiedClientLimit, append(ofAddress.id[:], rc.credential.Client...))
	return g.acquireLimits(rc, named, ofAddress)
}

// recordClient remembers whom the OAuth service has found behind the credential of a call, by its answer.
func (g *Gateway) recordClient(rc *requestContext) {
	response := rc.Response()
	client, found := caller.ParseClient(response.Header.Peek(caller.ClientHeader))
	response.Header.Del(caller.ClientHeader)
	switch {
	case !rc.hasCredential:
	case found:
		g.clients.Add(rc.credential.Key, client)
	case response.StatusCode()/100 == 4:
		rc.wrongCredential = true
		if !rc.credential.Signed { // a wrong signature says nothing of the others of the client
			g.clients.Remove(rc.credential.Key)
		}
	}
}

// releaseLimits releases what a request has acquired; that of a wrong credential after rejectedTTL.
func (g *Gateway) releaseLimits(rc *requestContext) {
	for _, s := range rc.acquiredLimits[:rc.acquiredCount] {
		if rc.wrongCredential && (s.kind == unverifiedLimit || s.kind == unverifiedClientLimit) {
			time.AfterFunc(rejectedTTL, func() { g.Limiter.release(s) })
			continue
		}
		g.Limiter.release(s)
	}
}
