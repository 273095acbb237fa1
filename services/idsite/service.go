// Package idsite creates tenants, keeps the settings of their hosted login pages, runs hosted
// logins, serves the Client API, and shows the pages of mailed links. Its rules are methods of
// Service, one file per noun or workflow:
//
//   - site.go, repository.go: settings, custom pages
//   - domain.go, domainproof.go, certificate.go: custom domains, who controls them, their certificates
//   - request.go: signed requests (jwtRequest); assertion.go: signed responses (jwtResponse)
//   - sso.go: the redirects of a hosted login
//   - pageapi.go: what hosted pages may call; pagetoken.go: their session tokens
//   - providercallback.go: the callback of social logins
//   - saml.go, samlsignon.go: as SAML service provider, and as SAML identity provider
//   - clientapi.go, authorize.go: the Client API
//   - openid/: what browsers see of OpenID providers
//   - link.go: mailed links
//
// Tenants are created in signup. What these doors do for a user (login, registration, password reset, second
// factor) is in journey, once. Its SQL is under store, its HTTP under rest, its wiring under app. The hosted
// pages are under screens, the pages that need no script, such as those of mailed links, under pages.
package idsite

import (
	"context"
	"crypto/x509"
	"time"

	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/idsite/journey"
	"github.com/doorward/doorward/services/idsite/openid"
	"github.com/doorward/doorward/services/idsite/signup"
	"github.com/doorward/doorward/services/idsite/store"
)

// Peers are the services that this one calls.
type Peers = journey.Peers

// Bootstrap configures the first tenant of a deployment.
type Bootstrap = signup.Bootstrap

// Service is the idsite service.
type Service struct {
	*signup.Tenants
	Journey *journey.Journey // what users do, for all doors
	OpenID  *openid.Provider // what browsers see of OpenID providers

	store  *store.Store
	peers  Peers
	ring   *secure.Keyring
	shared secure.Keyrings // seals what is sent to the gateway
	now    func() time.Time
	cfg    Config
}

// Config has the addresses and the names by which browsers know the deployment.
type Config struct {
	Base href.Base // of the management API
	// AliasTitle is the alias of the deployment as headers (X-Service-Agent), claims and the
	// directory of the administrators are named after it: "Service".
	AliasTitle string
	Product    string          // the name of the product on pages that know no application or directory
	Shared     secure.Keyrings // the keys that the processes of the deployment share
	Suffix     string          // of the default domains of hosted pages: <tenant key>.id.<suffix>
	// ClientSuffix is the domain under which applications have their Client APIs.
	ClientSuffix string
	SignUp       bool // anybody may create a tenant at /register
	// Roots are the authorities whose certificates prove a custom domain; nil: those of the system.
	Roots *x509.CertPool
	// LookupTXT returns the TXT records of a name, as net.Resolver does.
	LookupTXT func(ctx context.Context, name string) ([]string, error)
}

// AliasTitle is the alias of the deployment as headers and claims have it: "Service".
func (s *Service) AliasTitle() string { return s.cfg.AliasTitle }

// Product is the name of the product on pages that know no application or directory.
func (s *Service) Product() string { return s.cfg.Product }

// displayName is the name of an application or a directory on pages. The built-in ones of the
// administrators are shown by the name of the product.
func (s *Service) displayName(name string, builtin bool) string {
	if builtin {
		return s.cfg.Product
	}
	return name
}

// New makes the service.
func New(s *store.Store, peers Peers, ring *secure.Keyring, now func() time.Time, cfg Config) *Service {
	made := &Service{
		Tenants: signup.New(s, peers, ring, now,
			signup.Config{AliasTitle: cfg.AliasTitle, Suffix: cfg.Suffix, SignUp: cfg.SignUp}),
		Journey: journey.New(s, peers, ring, now, cfg.Base), store: s, peers: peers, ring: ring, shared: cfg.Shared, now: now,
		cfg: cfg,
	}
	made.OpenID = &openid.Provider{Config: openid.Config{
		Store: s, Peers: peers, Journey: made.Journey, Now: now, Base: cfg.Base, Page: made.beginPage,
	}}
	return made
}
