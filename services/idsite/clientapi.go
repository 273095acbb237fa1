package idsite

import (
	"context"
	"net/url"
	"slices"
	"strings"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/api/oauthapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/redirecturi"
	"github.com/doorward/doorward/services/idsite/journey"
)

// ClientAPI is the Client API of an application: what a browser or a mobile app may call without
// an API key (docs/interface/client-api.md). What its users do is that of journey.Client. The HTTP part is
// rest/clientapi.go, which also checks what the web config has turned off.
type ClientAPI struct {
	journey.Client
	svc    *Service
	Config oauthapi.ClientConfig
}

// OpenClientAPI returns the Client API of a DNS label. It returns apierr.NotFound where no
// application has the label, the web config is disabled, or the application is disabled.
func (s *Service) OpenClientAPI(ctx context.Context, label string) (*ClientAPI, error) {
	app, err := s.peers.Application.ApplicationByDNSLabel(ctx, applicationapi.DNSLabel{Label: label})
	if err != nil {
		return nil, err
	}
	config, err := s.peers.OAuth.ClientConfig(caller.WithTenant(ctx, app.TenantID),
		id.Ref{Tenant: app.TenantID, ID: app.ID})
	if err != nil {
		return nil, err
	}
	if !config.Enabled || app.Builtin || app.Status != directoryapi.Enabled {
		return nil, apierr.NotFound
	}
	return &ClientAPI{journey.Client{Journey: s.Journey, Application: app}, s, config}, nil
}

// Origin is the address of the Client API at its own host, <dns label>.<client suffix>.
func (c *ClientAPI) Origin() string {
	return c.svc.cfg.Base.Origin(c.Application.DomainName(c.svc.cfg.ClientSuffix))
}

// AllowsOrigin reports whether pages of an origin may call the Client API and get its cookies
// (CORS). self is the origin of the Client API itself.
func (c *ClientAPI) AllowsOrigin(origin, self string) bool {
	return redirecturi.IsListedOrigin(origin, append([]string{self}, c.Application.AuthorizedOriginURIs...))
}

// ref names the application.
func (c *ClientAPI) ref() id.Ref { return id.Ref{Tenant: c.Application.TenantID, ID: c.Application.ID} }

// isWorkflowEnabled reports whether a workflow, such as forgot password, is enabled: as the web
// config sets it or, where that sets nothing, if the default directory sends the mail for it.
func (c *ClientAPI) isWorkflowEnabled(ctx context.Context, set *bool,
	mail func(directoryapi.RegistrationRules) bool) (bool, error) {
	if set != nil {
		return *set, nil
	}
	rules, err := c.RegistrationRules(ctx)
	return rules != nil && mail(*rules), err
}

func sendsReset(r directoryapi.RegistrationRules) bool { return r.ResetEmail }

func sendsVerification(r directoryapi.RegistrationRules) bool { return r.VerificationEmail }

// ForgotEnabled reports whether passwords can be reset by mail.
func (c *ClientAPI) ForgotEnabled(ctx context.Context) (bool, error) {
	return c.isWorkflowEnabled(ctx, c.Config.ForgotPassword, sendsReset)
}

// ChangeEnabled reports whether passwords can be changed with a mailed token.
func (c *ClientAPI) ChangeEnabled(ctx context.Context) (bool, error) {
	return c.isWorkflowEnabled(ctx, c.Config.ChangePassword, sendsReset)
}

// VerifyEnabled reports whether email addresses are verified.
func (c *ClientAPI) VerifyEnabled(ctx context.Context) (bool, error) {
	return c.isWorkflowEnabled(ctx, c.Config.VerifyEmail, sendsVerification)
}

// Me is what the endpoint /me shows of an account.
type Me struct {
	directoryapi.Profile
	Keys         []oauthapi.Key
	Applications []applicationapi.Application
}

// Me returns the account of an access token with the resources that the web config expands. The
// account comes from the validation of the token and is not read again.
func (c *ClientAPI) Me(ctx context.Context, account directoryapi.Account) (me Me, err error) {
	me.Account = account
	if len(c.Config.MeExpand) == 0 {
		return me, nil
	}
	at := id.Ref{Tenant: c.Application.TenantID, ID: account.ID}
	shows := func(name string) bool { return slices.Contains(c.Config.MeExpand, name) }
	me.Profile, err = c.svc.peers.Directory.Profile(ctx, directoryapi.ProfileRequest{
		Ref: at, Directory: shows("directory"), OfTenant: shows("tenant"), Groups: shows("groups"),
		Memberships: shows("groupMemberships"),
		CustomData:  shows("customData"), ProviderData: shows("providerData"),
	})
	if err != nil {
		return me, err
	}
	if shows("apiKeys") {
		keys, err := c.svc.peers.OAuth.KeysOf(ctx, at)
		if err != nil {
			return me, err
		}
		me.Keys = keys.Items
	}
	if shows("applications") {
		applications, err := c.svc.peers.Application.AccountApplications(ctx, at)
		if err != nil {
			return me, err
		}
		me.Applications = applications.Items
	}
	return me, nil
}

// AuthorizeURI is the address at which a browser begins a login at the provider of a directory;
// nil for SAML.
func (c *ClientAPI) AuthorizeURI(client string, d directoryapi.LoginDirectory) *string {
	if d.ProviderID == "saml" {
		return nil
	}
	uri := client + "/authorize?response_type=" + c.svc.responseType() + "&account_store_href=" +
		url.QueryEscape(c.svc.cfg.Base.To("directories", d.ID))
	return &uri
}

// responseType is the response_type of /authorize, which begins with the name of the product.
func (s *Service) responseType() string { return strings.ToLower(s.cfg.AliasTitle) + "_token" }
