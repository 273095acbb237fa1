package idsite

import (
	"context"
	"errors"
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

// accountStore is the account store that a request names, in the application.
func (c *ClientAPI) accountStore(at AccountStoreParam) applicationapi.LoginTarget {
	where := applicationapi.LoginTarget{Tenant: c.Application.TenantID, Application: c.Application.ID, NameKey: strings.ToLower(at.NameKey)}
	if where.NameKey == "" {
		where.AccountStore = href.Link{Href: at.AccountStore}
	}
	return where
}

// isWorkflowEnabled reports whether a workflow, such as forgot password, is enabled: as the web
// config sets it or, where that sets nothing, if the default directory sends the mail for it.
func (c *ClientAPI) isWorkflowEnabled(ctx context.Context, set *bool, mail func(directoryapi.RegistrationRules) bool) (bool, error) {
	if set != nil {
		return *set, nil
	}
	rules, err := c.registrationRules(ctx, c.accountStore(AccountStoreParam{}))
	return rules != nil && mail(*rules), err
}

// registrationRules returns what the default account store requires of a new account, or nil where
// nobody can register.
func (c *ClientAPI) registrationRules(ctx context.Context, where applicationapi.LoginTarget) (*directoryapi.RegistrationRules, error) {
	stores, err := c.svc.peers.Application.LoginDirectories(ctx, where)
	if err != nil {
		return nil, err
	}
	return c.svc.registrationRules(ctx, where.Tenant, stores.Default)
}

// registrationRules returns what a directory requires of a new account. It returns nil where nobody
// can register: there is no such directory, or it is a mirror.
func (s *Service) registrationRules(ctx context.Context, tenant, directory id.ID) (*directoryapi.RegistrationRules, error) {
	if directory.IsZero() {
		return nil, nil
	}
	rules, err := s.peers.Directory.RegistrationRules(ctx, id.Ref{Tenant: tenant, ID: directory})
	if errors.Is(err, apierr.NotFound) || err == nil && rules.Mirror {
		return nil, nil
	}
	return &rules, err
}

// ForgotEnabled reports whether passwords can be reset by mail.
func (c *ClientAPI) ForgotEnabled(ctx context.Context) (bool, error) {
	return c.isWorkflowEnabled(ctx, c.Config.ForgotPassword, func(r directoryapi.RegistrationRules) bool { return r.ResetEmail })
}

// ChangeEnabled reports whether passwords can be changed with a mailed token.
func (c *ClientAPI) ChangeEnabled(ctx context.Context) (bool, error) {
	return c.isWorkflowEnabled(ctx, c.Config.ChangePassword, func(r directoryapi.RegistrationRules) bool { return r.ResetEmail })
}

// VerifyEnabled reports whether email addresses are verified.
func (c *ClientAPI) VerifyEnabled(ctx context.Context) (bool, error) {
	return c.isWorkflowEnabled(ctx, c.Config.VerifyEmail, func(r directoryapi.RegistrationRules) bool { return r.VerificationEmail })
}

// LoginModel is what a sign-in or registration form shows.
type LoginModel struct {
	Directories []directoryapi.LoginDirectory
	Rules       *directoryapi.RegistrationRules // nil: nobody can register
}

// Model returns what a sign-in or registration form shows, for the account store that at names.
func (c *ClientAPI) Model(ctx context.Context, at AccountStoreParam) (m LoginModel, err error) {
	where := c.accountStore(at)
	where.DirectOnly = true
	stores, err := c.svc.peers.Application.LoginDirectories(ctx, where)
	if err != nil {
		return m, err
	}
	list, err := c.svc.peers.Directory.LoginDirectories(ctx,
		directoryapi.LoginDirectories{Tenant: where.Tenant, Directories: stores.Directories})
	if err != nil {
		return m, err
	}
	for _, d := range list.Items {
		if d.Status == directoryapi.Enabled && (directoryapi.IsSocial(d.ProviderID) || d.ProviderID == "saml") {
			m.Directories = append(m.Directories, d)
		}
	}
	m.Rules, err = c.svc.registrationRules(ctx, where.Tenant, stores.Default)
	return m, err
}

// Register registers a user: it creates an account. The user is not logged in by it.
func (c *ClientAPI) Register(
	ctx context.Context, in directoryapi.NewAccount, at AccountStoreParam,
) (directoryapi.Account, error) {
	return c.svc.peers.Application.Register(ctx, applicationapi.Register{LoginTarget: c.accountStore(at), Account: in})
}

// LogIn verifies a login name and a password and issues tokens, by the password grant.
func (c *ClientAPI) LogIn(
	ctx context.Context, login string, password secure.Secret, at AccountStoreParam,
) (directoryapi.Account, oauthapi.ClientTokens, error) {
	form := map[string]secure.Secret{"grant_type": "password", "username": secure.Secret(login), "password": password}
	if at.NameKey != "" {
		form["organizationNameKey"] = secure.Secret(at.NameKey)
	} else if at.AccountStore != "" {
		form["accountStore"] = secure.Secret(at.AccountStore)
	}
	return c.issueTokens(ctx, form)
}

// issueTokens issues tokens for the form of a grant, and returns them with their account.
func (c *ClientAPI) issueTokens(ctx context.Context, form map[string]secure.Secret) (directoryapi.Account, oauthapi.ClientTokens, error) {
	tokens, err := c.Token(ctx, form)
	if err != nil {
		return directoryapi.Account{}, tokens, err
	}
	valid, err := c.Validate(ctx, tokens.Access)
	if err != nil {
		return directoryapi.Account{}, tokens, err
	}
	return valid.Account, tokens, nil
}

// Token issues tokens for a request to the token endpoint.
func (c *ClientAPI) Token(ctx context.Context, form map[string]secure.Secret) (oauthapi.ClientTokens, error) {
	return c.svc.peers.OAuth.ClientToken(ctx, oauthapi.ClientForm{Tenant: c.Application.TenantID, Application: c.Application.ID, Form: form})
}

// Revoke revokes a token, and the access or refresh token that was issued with it.
func (c *ClientAPI) Revoke(ctx context.Context, form map[string]secure.Secret) error {
	_, err := c.svc.peers.OAuth.ClientRevoke(ctx, oauthapi.ClientForm{Tenant: c.Application.TenantID, Application: c.Application.ID,
		Form: form})
	return err
}

// Validate validates an access token.
func (c *ClientAPI) Validate(ctx context.Context, token secure.Secret) (oauthapi.ValidToken, error) {
	return c.svc.peers.OAuth.ValidateToken(ctx, oauthapi.ValidateToken{Tenant: c.Application.TenantID, Application: c.Application.ID,
		Token: token})
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

// RequestPasswordReset sends a password reset mail (forgot password). Its answer and its time are
// the same whether the account exists or not (enumeration.go).
func (c *ClientAPI) RequestPasswordReset(ctx context.Context, login string, at AccountStoreParam) error {
	return hideAccountExistence(ctx, func() error {
		_, err := c.svc.peers.Application.RequestReset(ctx, applicationapi.LoginName{LoginTarget: c.accountStore(at), Login: login})
		return err
	})
}

// SendVerification sends another verification mail. Its answer and its time are the same whether
// the account exists or not.
func (c *ClientAPI) SendVerification(ctx context.Context, login string, at AccountStoreParam) error {
	return hideAccountExistence(ctx, func() error {
		_, err := c.svc.peers.Application.RequestVerification(ctx, applicationapi.LoginName{LoginTarget: c.accountStore(at), Login: login})
		return err
	})
}

// CheckReset returns apierr.NotFound unless a password reset token is valid.
func (c *ClientAPI) CheckReset(ctx context.Context, token secure.Secret) error {
	_, err := c.svc.peers.Application.CheckReset(ctx, c.resetToken(token))
	return err
}

// ChangePassword sets a new password with a password reset token, which it consumes.
func (c *ClientAPI) ChangePassword(ctx context.Context, token, password secure.Secret) error {
	_, err := c.svc.peers.Application.ResetPassword(ctx, applicationapi.ResetPassword{ResetToken: c.resetToken(token), Password: password})
	return err
}

func (c *ClientAPI) resetToken(token secure.Secret) applicationapi.ResetToken {
	return applicationapi.ResetToken{Tenant: c.Application.TenantID, Application: c.Application.ID, Token: token}
}

// Verify verifies an email address with a token, which it consumes.
func (c *ClientAPI) Verify(ctx context.Context, token secure.Secret) error {
	_, err := c.svc.peers.Directory.VerifyEmail(ctx, directoryapi.VerifyEmail{Tenant: c.Application.TenantID, Token: token})
	return err
}

// validateForFactors returns the access token of a request to /factors or /challenges. It is
// zero for a request with a state, which names the account. Without either it returns
// apierr.BadRequest.
func (c *ClientAPI) validateForFactors(ctx context.Context, state, token secure.Secret) (oauthapi.ValidToken, error) {
	if state != "" {
		return oauthapi.ValidToken{}, nil
	}
	valid, err := c.Validate(ctx, token)
	if apierr.IsRefusal(err) {
		err = apierr.BadRequest.Because("send the state of a login, or an access token as Authorization: Bearer")
	}
	return valid, err
}

// EnrollFactor creates a factor of a login in progress or of a logged-in user.
func (c *ClientAPI) EnrollFactor(ctx context.Context, in mfaapi.EnrollFactor, token secure.Secret) (mfaapi.EnrolledFactor, error) {
	valid, err := c.validateForFactors(ctx, in.State, token)
	if err != nil {
		return mfaapi.EnrolledFactor{}, err
	}
	in.Tenant, in.Application, in.Account, in.SecondFactor = c.Application.TenantID, c.Application.ID, valid.Account.ID, valid.SecondFactor
	return c.svc.peers.MFA.EnrollFactor(ctx, in)
}

// ChallengeFactor creates a challenge of a factor, or answers a challenge if there is a code.
func (c *ClientAPI) ChallengeFactor(ctx context.Context, in mfaapi.ChallengeFactor, token secure.Secret) (mfaapi.Challenged, error) {
	valid, err := c.validateForFactors(ctx, in.State, token)
	if err != nil {
		return mfaapi.Challenged{}, err
	}
	in.Tenant, in.Application, in.Account, in.SecondFactor = c.Application.TenantID, c.Application.ID, valid.Account.ID, valid.SecondFactor
	return c.svc.peers.MFA.ChallengeFactor(ctx, in)
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
