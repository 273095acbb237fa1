package journey

import (
	"context"
	"maps"
	"strings"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/api/mfaapi"
	"github.com/doorward/doorward/pkg/api/oauthapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/secure"
)

// Client is the journey of the users of a client that has pages of its own and gets tokens: a Client API. Its door
// has proved the application. The client names account stores freely.
type Client struct {
	*Journey
	Application applicationapi.Application
}

// Target is the account store that a client names, in the application.
func (c Client) Target(named directoryapi.StoreName) applicationapi.LoginTarget {
	where := applicationapi.LoginTarget{
		Tenant: c.Application.TenantID, Application: c.Application.ID, NameKey: strings.ToLower(named.NameKey),
	}
	if where.NameKey == "" {
		where.AccountStore = href.Link{Href: named.Href}
	}
	return where
}

// Form returns what a form shows for an account store: without those of organizations, unless the client names one.
func (c Client) Form(ctx context.Context, named directoryapi.StoreName) (Form, error) {
	where := c.Target(named)
	where.DirectOnly = true
	stores, err := c.peers.Application.LoginDirectories(ctx, where)
	if err != nil {
		return Form{}, err
	}
	return c.form(ctx, where.Tenant, stores)
}

// RegistrationRules returns what the default account store requires of a new account, or nil where
// nobody can register.
func (c Client) RegistrationRules(ctx context.Context) (*directoryapi.RegistrationRules, error) {
	where := c.Target(directoryapi.StoreName{})
	stores, err := c.peers.Application.LoginDirectories(ctx, where)
	if err != nil {
		return nil, err
	}
	return c.registrationRules(ctx, where.Tenant, stores.Default)
}

// Register registers a user: it creates an account. The user is not logged in by it, so that a taken email is
// apierr.Exists.
func (c Client) Register(ctx context.Context, in directoryapi.NewAccount,
	named directoryapi.StoreName) (directoryapi.Account, error) {
	return c.peers.Application.Register(ctx, applicationapi.Register{LoginTarget: c.Target(named), Account: in})
}

// TokenLogin is a login for tokens.
type TokenLogin struct {
	Account directoryapi.Account
	Tokens  oauthapi.ClientTokens
}

// LogIn verifies a login name and a password and issues tokens, by the password grant. Where the login wants a
// second factor, the fields of the error say how it goes on.
func (c Client) LogIn(ctx context.Context, login string, password secure.Secret,
	named directoryapi.StoreName) (TokenLogin, error) {
	form := map[string]secure.Secret{
		"grant_type": "password", "username": secure.Secret(login), "password": password,
		"organizationNameKey": secure.Secret(named.NameKey),
	}
	if named.NameKey == "" {
		form["accountStore"] = secure.Secret(named.Href)
	}
	return c.logIn(ctx, form)
}

// LogInWithProviderData logs the user of a token or code of a provider in, and issues tokens.
func (c Client) LogInWithProviderData(ctx context.Context, login directoryapi.SocialLogin) (TokenLogin, error) {
	return c.logIn(ctx, map[string]secure.Secret{
		"grant_type": "service_social", "providerId": secure.Secret(login.Provider), "accessToken": login.AccessToken,
		"accessTokenSecret": login.AccessTokenSecret, "code": login.Code, "redirectUri": secure.Secret(login.RedirectURI),
		"accountStore": secure.Secret(login.AccountStore), "nameKey": secure.Secret(login.NameKey),
	})
}

// logIn logs a user in by the form of a grant, whose empty fields are left out.
func (c Client) logIn(ctx context.Context, form map[string]secure.Secret) (TokenLogin, error) {
	maps.DeleteFunc(form, func(_ string, value secure.Secret) bool { return value == "" })
	tokens, err := c.Token(ctx, form)
	if err != nil {
		return TokenLogin{}, err
	}
	valid, err := c.Validate(ctx, oauthapi.PresentedToken{Token: tokens.Access})
	return TokenLogin{valid.Account, tokens}, err
}

// Token issues tokens for a request to the token endpoint.
func (c Client) Token(ctx context.Context, form map[string]secure.Secret) (oauthapi.ClientTokens, error) {
	return c.peers.OAuth.ClientToken(ctx,
		oauthapi.ClientForm{Tenant: c.Application.TenantID, Application: c.Application.ID, Form: form})
}

// Revoke revokes a token, and the access or refresh token that was issued with it.
func (c Client) Revoke(ctx context.Context, form map[string]secure.Secret) error {
	_, err := c.peers.OAuth.ClientRevoke(ctx,
		oauthapi.ClientForm{Tenant: c.Application.TenantID, Application: c.Application.ID, Form: form})
	return err
}

// Validate validates an access token.
func (c Client) Validate(ctx context.Context, token oauthapi.PresentedToken) (oauthapi.ValidToken, error) {
	return c.peers.OAuth.ValidateToken(ctx,
		oauthapi.ValidateToken{Tenant: c.Application.TenantID, Application: c.Application.ID, PresentedToken: token})
}

// RequestPasswordReset sends a password reset mail (forgot password).
func (c Client) RequestPasswordReset(ctx context.Context, login string, named directoryapi.StoreName) error {
	return c.RequestReset(ctx, c.Target(named), login)
}

// CheckReset returns apierr.NotFound unless a password reset token is valid.
func (c Client) CheckReset(ctx context.Context, token secure.Secret) error {
	return c.checkReset(ctx, c.resetToken(token))
}

// ChangePassword sets a new password with a password reset token, which it consumes.
func (c Client) ChangePassword(ctx context.Context, token, password secure.Secret) error {
	return c.resetPassword(ctx, c.resetToken(token), password)
}

func (c Client) resetToken(token secure.Secret) applicationapi.ResetToken {
	return applicationapi.ResetToken{Tenant: c.Application.TenantID, Application: c.Application.ID, Token: token}
}

// SendVerification sends another verification mail to the account of a login name. Its answer and its time are
// the same whether the account exists or not (enumeration.go).
func (c Client) SendVerification(ctx context.Context, login string, named directoryapi.StoreName) error {
	return hideAccountExistence(ctx, func() error {
		_, err := c.peers.Application.RequestVerification(ctx,
			applicationapi.LoginName{LoginTarget: c.Target(named), Login: login})
		return err
	})
}

// EnrollFactor creates a factor: of the account of in.State, of a login in progress, or of that of an access token.
// Without either it returns apierr.BadRequest.
func (c Client) EnrollFactor(ctx context.Context, in mfaapi.EnrollFactor,
	token oauthapi.PresentedToken) (mfaapi.EnrolledFactor, error) {
	valid, err := c.validateForFactors(ctx, in.State, token)
	if err != nil {
		return mfaapi.EnrolledFactor{}, err
	}
	in.Tenant, in.Application = c.Application.TenantID, c.Application.ID
	in.Account, in.SecondFactor = valid.Account.ID, valid.SecondFactor
	return c.peers.MFA.EnrollFactor(ctx, in)
}

// ChallengeFactor creates a challenge of a factor, or answers a challenge if there is a code, for an account as
// EnrollFactor does.
func (c Client) ChallengeFactor(ctx context.Context, in mfaapi.ChallengeFactor,
	token oauthapi.PresentedToken) (mfaapi.Challenged, error) {
	valid, err := c.validateForFactors(ctx, in.State, token)
	if err != nil {
		return mfaapi.Challenged{}, err
	}
	in.Tenant, in.Application = c.Application.TenantID, c.Application.ID
	in.Account, in.SecondFactor = valid.Account.ID, valid.SecondFactor
	return c.peers.MFA.ChallengeFactor(ctx, in)
}

// validateForFactors validates the access token of a client, unless it has a state, which names the account.
func (c Client) validateForFactors(ctx context.Context, state secure.Secret,
	token oauthapi.PresentedToken) (oauthapi.ValidToken, error) {
	if state != "" {
		return oauthapi.ValidToken{}, nil
	}
	valid, err := c.Validate(ctx, token)
	if apierr.IsRefusal(err) {
		return valid, apierr.BadRequest.Because("send the state of a login, or an access token as Authorization: Bearer")
	}
	return valid, err
}
