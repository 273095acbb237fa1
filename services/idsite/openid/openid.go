// Package openid has what browsers see of OpenID providers: authorization requests, the consent page, logout and the
// page of devices. It is a door (package journey): the OAuth service checks what clients send, a login is the hosted
// login of old, whose pages need no change, and the journey has its rules. Its HTTP is in services/idsite/rest, its
// pages work without scripts.
//
//   - authorize.go: an authorization request, from its begin to the code
//   - consent.go: what a user has allowed a client
//   - device.go: the page of devices
//   - logout.go: the logout of a relying party
package openid

import (
	"context"
	"crypto/subtle"
	"encoding/base64"
	"time"

	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/idsite/journey"
	"github.com/doorward/doorward/services/idsite/store"
)

// Provider shows the pages of OpenID providers.
type Provider struct{ Config }

// Config is what the pages need.
type Config struct {
	Store   *store.Store
	Peers   journey.Peers
	Journey *journey.Journey
	Now     func() time.Time
	Base    href.Base
	// Page returns the address of a hosted page for a login in progress, by its path: / or /register.
	Page func(ctx context.Context, f store.Flow, site store.Site, path string) (string, error)
}

// address is where the service has a path below the issuer of an application: at the address of the deployment, which
// has the cookies of the browser. The gateway leads the browser there from an issuer that has another host.
func (p *Provider) address(application id.ID, path string) string {
	return p.Base.Host() + "/oidc/" + application.String() + path
}

// formSecret is the secret of the forms of a page: a page of another site does not know it (CSRF). It is derived from
// a cookie of the browser: of the login in progress, or of the session.
func formSecret(cookie secure.Secret) secure.Secret {
	return secure.Secret(base64.RawURLEncoding.EncodeToString(secure.Digest("form " + cookie)))
}

// isFormSecret reports whether a form has the secret of a cookie.
func isFormSecret(sent, cookie secure.Secret) bool {
	return subtle.ConstantTimeCompare([]byte(sent), []byte(formSecret(cookie))) == 1
}

// ResumeAddress is where the browser of a login goes on that has ended without an assertion.
func ResumeAddress(f store.Flow) string { return f.CallbackURI + "?flow=" + f.ID.String() }
