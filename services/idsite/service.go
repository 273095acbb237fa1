// Package idsite makes tenants, keeps the settings of their hosted login pages,
// runs hosted logins, serves the Client API, and shows the pages of mailed links.
// Its rules are methods of Service, one file per noun or workflow: site.go,
// request.go (signed requests), sso.go (redirects and single sign-on sessions),
// browser.go (what a page may call), assertion.go, signup.go. Its SQL is under
// store, its HTTP under rest, its wiring under app, the built-in pages under
// screens.
package idsite

import (
	"time"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/api/mfaapi"
	"github.com/doorward/doorward/pkg/api/oauthapi"
	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/idsite/store"
)

// Peers are the services that this one calls, each by both of its contracts.
type Peers struct {
	Directory   directoryapi.Contract
	Application applicationapi.Contract
	OAuth       oauthapi.Contract
	MFA         mfaapi.Contract
}

// Service is the idsite service.
type Service struct {
	store  *store.Store
	peers  Peers
	ring   *secure.Keyring
	shared secure.Keyrings // seals what goes to the gateway
	now    func() time.Time
	cfg    Config
}

// Config is how the deployment is known to browsers.
type Config struct {
	Base    href.Base       // of the management API
	Title   string          // the product's name on the wire: "Service"
	Product string          // its name on pages that know no application or directory
	Shared  secure.Keyrings // that the processes of the deployment share
	Suffix  string          // of the domains of hosted pages, which are <tenant key>.id.<suffix>
	// ClientSuffix is the domain under which applications have their Client APIs.
	ClientSuffix string
	SignUp       bool // everybody may sign a tenant up
}

// Title is the name that the service goes by on the wire.
func (s *Service) Title() string { return s.cfg.Title }

// Product is its name on pages that know no application or directory.
func (s *Service) Product() string { return s.cfg.Product }

// displayName is the name of an application or a directory on pages: those of the
// administrators, which are built in, go by the name of the product.
func (s *Service) displayName(name string, builtin bool) string {
	if builtin {
		return s.cfg.Product
	}
	return name
}

// New makes the service.
func New(s *store.Store, peers Peers, ring *secure.Keyring, now func() time.Time, cfg Config) *Service {
	return &Service{store: s, peers: peers, ring: ring, shared: cfg.Shared, now: now, cfg: cfg}
}
