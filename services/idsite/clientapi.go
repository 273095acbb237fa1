package idsite

import (
	"context"
	"net/url"
	"slices"
	"strings"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/api/mfaapi"
	"github.com/doorward/doorward/pkg/api/oauthapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/redirecturi"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/idsite/journey"
)

// ClientAPI is the Client API of an application: what a browser or a mobile app may call without
// an API key (docs/interface/client-api.md). The HTTP part is rest/clientapi.go, which also checks
// what the web config has turned off.
type ClientAPI struct {
	svc         *Service
	Application applicationapi.Application
	Config      oauthapi.ClientConfig
}

// OpenClientAPI returns the Client API of a DNS label. It returns apierr.NotFound where no
// application has the label, the web config is disabled, or the application is disabled.
func (s *Service) OpenClientAPI(ctx context.Context, label string) (*ClientAPI, error) {
	app, err := s.peers.Application.ApplicationByDNSLabel(ctx, applicationapi.DNSLabel{Label: label})
	if err != nil {
		return nil, err
	}
	config, err := s.peers.OAuth.ClientConfig(caller.WithTenant(ctx, app.TenantID), id.Ref{Tenant: app.TenantID, ID: app.ID})
	if err != nil {
		return nil, err
	}
	if !config.Enabled || app.Builtin || app.Status != directoryapi.Enabled {
		return nil, apierr.NotFound
	}
	return &ClientAPI{s, app, config}, nil
}

// Origin is the address of the Client API at its own host, <dns label>.<client suffix>.
func (c *ClientAPI) Origin() string {
	return c.svc.originOf(c.Application.DomainName(c.svc.cfg.ClientSuffix))
}

// AllowsOrigin reports whether pages of an origin may call the Client API and get its cookies
// (CORS). self is the origin of the Client API itself.
func (c *ClientAPI) AllowsOrigin(origin, self string) bool {
	return redirecturi.IsListedOrigin(origin, append([]string{self}, c.Application.AuthorizedOriginURIs...))
}

// AccountStoreParam is the account store that a request to the Client API names.
type AccountStoreParam struct{ AccountStore, NameKey string }

// Target is the account store that a request names, in the application.
func (c *ClientAPI) Target(at AccountStoreParam) applicationapi.LoginTarget {
	where := applicationapi.LoginTarget{Tenant: c.Application.TenantID, Application: c.Application.ID, NameKey: strings.ToLower(at.NameKey)}
	if where.NameKey == "" {
		where.AccountStore = href.Link{Href: at.AccountStore}
	}
	return where
}

// ref names the application.
func (c *ClientAPI) ref() id.Ref { return id.Ref{Tenant: c.Application.TenantID, ID: c.Application.ID} }

// isWorkflowEnabled reports whether a workflow, such as forgot password, is enabled: as the web
// config sets it or, where that sets nothing, if the default directory sends the mail for it.
func (c *ClientAPI) isWorkflowEnabled(ctx context.Context, set *bool, mail func(directoryapi.RegistrationRules) bool) (bool, error) {
	if set != nil {
		return *set, nil
	}
	rules, err := c.svc.Journey.RegistrationRules(ctx, c.Target(AccountStoreParam{}))
	return rules != nil && mail(*rules), err
}

func sendsReset(r directoryapi.RegistrationRules) bool { return r.ResetEmail }

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
	return c.isWorkflowEnabled(ctx, c.Config.VerifyEmail, func(r directoryapi.RegistrationRules) bool { return r.VerificationEmail })
}

// Model returns what a sign-in or registration form shows, for the account store that at names.
func (c *ClientAPI) Model(ctx context.Context, at AccountStoreParam) (journey.Form, error) {
	return c.svc.Journey.FormOfClient(ctx, c.Target(at))
}

// Register registers a user: it creates an account. The user is not logged in by it.
func (c *ClientAPI) Register(ctx context.Context, in directoryapi.NewAccount, at AccountStoreParam) (directoryapi.Account, error) {
	return c.svc.Journey.RegisterForClient(ctx, c.Target(at), in)
}

// LogIn verifies a login name and a password and issues tokens, by the password grant.
func (c *ClientAPI) LogIn(ctx context.Context, login string, password secure.Secret, at AccountStoreParam) (journey.TokenLogin, error) {
	form := map[string]secure.Secret{"grant_type": "password", "username": secure.Secret(login), "password": password}
	if at.NameKey != "" {
		form["organizationNameKey"] = secure.Secret(at.NameKey)
	} else if at.AccountStore != "" {
		form["accountStore"] = secure.Secret(at.AccountStore)
	}
	return c.svc.Journey.LogInForTokens(ctx, c.ref(), form)
}

// Token issues tokens for a request to the token endpoint.
func (c *ClientAPI) Token(ctx context.Context, form map[string]secure.Secret) (oauthapi.ClientTokens, error) {
	return c.svc.Journey.IssueTokens(ctx, c.ref(), form)
}

// Revoke revokes a token, and the access or refresh token that was issued with it.
func (c *ClientAPI) Revoke(ctx context.Context, form map[string]secure.Secret) error {
	return c.svc.Journey.RevokeToken(ctx, c.ref(), form)
}

// Validate validates an access token.
func (c *ClientAPI) Validate(ctx context.Context, token secure.Secret) (oauthapi.ValidToken, error) {
	return c.svc.Journey.ValidateToken(ctx, c.ref(), token)
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
		Ref: at, Directory: shows("directory"), OfTenant: shows("tenant"), Groups: shows("groups"), Memberships: shows("groupMemberships"),
		CustomData: shows("customData"), ProviderData: shows("providerData"),
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

// RequestPasswordReset sends a password reset mail (forgot password).
func (c *ClientAPI) RequestPasswordReset(ctx context.Context, login string, at AccountStoreParam) error {
	return c.svc.Journey.RequestReset(ctx, c.Target(at), login)
}

// SendVerification sends another verification mail.
func (c *ClientAPI) SendVerification(ctx context.Context, login string, at AccountStoreParam) error {
	return c.svc.Journey.SendVerification(ctx, c.Target(at), login)
}

// CheckReset returns apierr.NotFound unless a password reset token is valid.
func (c *ClientAPI) CheckReset(ctx context.Context, token secure.Secret) error {
	return c.svc.Journey.CheckReset(ctx, c.resetToken(token))
}

// ChangePassword sets a new password with a password reset token, which it consumes.
func (c *ClientAPI) ChangePassword(ctx context.Context, token, password secure.Secret) error {
	return c.svc.Journey.ResetPassword(ctx, c.resetToken(token), password)
}

func (c *ClientAPI) resetToken(token secure.Secret) applicationapi.ResetToken {
	return applicationapi.ResetToken{Tenant: c.Application.TenantID, Application: c.Application.ID, Token: token}
}

// Verify verifies an email address with a token, which it consumes.
func (c *ClientAPI) Verify(ctx context.Context, token secure.Secret) error {
	_, err := c.svc.Journey.VerifyEmail(ctx, c.Application.TenantID, token)
	return err
}

// EnrollFactor creates a factor of a login in progress or of a logged-in user.
func (c *ClientAPI) EnrollFactor(ctx context.Context, in mfaapi.EnrollFactor, token secure.Secret) (mfaapi.EnrolledFactor, error) {
	return c.svc.Journey.EnrollFactorOfClient(ctx, c.ref(), in, token)
}

// ChallengeFactor creates a challenge of a factor, or answers a challenge if there is a code.
func (c *ClientAPI) ChallengeFactor(ctx context.Context, in mfaapi.ChallengeFactor, token secure.Secret) (mfaapi.Challenged, error) {
	return c.svc.Journey.ChallengeFactorOfClient(ctx, c.ref(), in, token)
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
