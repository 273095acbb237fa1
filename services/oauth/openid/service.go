// Package openid has the rules of the OpenID providers: every application is one. It is a part of the OAuth
// service, beside the tokens of old in package oauth. Its rules are methods of Service, one file per noun. Its
// SQL is in services/oauth/store, its HTTP in services/oauth/rest.
package openid

import (
	"context"
	"time"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/api/mfaapi"
	"github.com/doorward/doorward/pkg/api/oauthapi"
	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/outbound"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/oauth/relyingparty"
	"github.com/doorward/doorward/services/oauth/signing"
	"github.com/doorward/doorward/services/oauth/store"
)

// Service has the rules of the OpenID providers.
type Service struct {
	Config
	*relyingparty.Clients
	*signing.Signer
	tenants *directoryapi.TenantGate
}

// Config is what the rules need.
type Config struct {
	Store       *store.Store
	Directory   directoryapi.API
	Application applicationapi.API
	Factors     mfaapi.Hosted
	Ring        *secure.Keyring
	Now         func() time.Time
	Base        href.Base
	// Outbound is the guard of connections to addresses that clients have named.
	Outbound outbound.Guard
	// Authenticate verifies an API key (oauthapi.API).
	Authenticate func(context.Context, oauthapi.Authenticate) (oauthapi.Key, error)
	// CheckLogin refuses the tokens of a login at a time whose account may not act through the application any
	// more, or has another password since.
	CheckLogin func(ctx context.Context, request applicationapi.CheckAccess, login time.Time) error
	// Count counts the result of a token request by its grant type, and that of a request which begins one.
	Count func(ctx context.Context, grantType string, err error)
}

// New returns the rules.
func New(cfg Config) *Service {
	return &Service{
		Config: cfg,
		Signer: signing.New(signing.Config{Store: cfg.Store, Directory: cfg.Directory, Ring: cfg.Ring, Now: cfg.Now}),
		Clients: relyingparty.New(relyingparty.Config{Store: cfg.Store, Application: cfg.Application, Now: cfg.Now,
			Outbound: cfg.Outbound}),
		tenants: directoryapi.NewTenantGate("oauth.tenants", cfg.Directory, cfg.Now),
	}
}
