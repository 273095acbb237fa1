package directoryapi

import (
	"context"
	"encoding/json"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/customdata"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
)

// Providers is what other services ask of the directory service for users who log in at the
// provider of a directory. The code of each social provider (Google, GitHub, …) is in
// services/directory/connect; docs/howto.md#add-a-social-provider says how to add a provider.
type Providers interface {
	// ProviderAccount returns the account of a user of the provider of a mirror directory, updated
	// with what the provider states of the user, and creates it at the first login
	// (docs/interface/applications.md#accounts-by-provider). Of concurrent calls for one user one
	// creates the account, and all return it. It returns apierr.NotFound for the directory,
	// DirectoryDisabled, AccountDisabled, AccountUnverified, AccountLocked, ProviderIncomplete for a
	// user without an id or an email, OutsideDomains for an email outside the domains that the mirror
	// is bound to, and Exists where another account has the email, unless both the provider and that
	// account have it verified.
	ProviderAccount(context.Context, ProviderUser) (ProviderAccountResult, error)

	// SocialAccount fetches the user of a login from the social or OAuth provider of a directory, and
	// returns the account as ProviderAccount does. It returns apierr.Reference where the directory
	// does not have the provider that the login names, RedirectURIMissing, ProviderRefused with the
	// error of the provider, and ProviderOtherClient for a token that was issued to another client.
	SocialAccount(context.Context, SocialAccount) (ProviderAccountResult, error)

	// BeginSocialLogin returns the URL to which a browser goes to log in at the social or OAuth
	// provider of a directory. It returns apierr.NotFound for the directory, Reference for a directory
	// without such a provider, and ProviderRefused.
	BeginSocialLogin(context.Context, BeginSocialLogin) (SocialLoginBegun, error)
}

// SocialAccount is the request for the account of a login at a provider.
type SocialAccount struct {
	Tenant      id.ID       `json:"tenant"`
	Directory   id.ID       `json:"directory"`
	Application id.ID       `json:"application,omitzero"` // through which the user logs in
	Account     id.ID       `json:"account,omitzero"`     // as that of ProviderUser
	Login       SocialLogin `json:"login"`
}

// BeginSocialLogin is the request to start a login in a browser.
type BeginSocialLogin struct {
	Tenant      id.ID         `json:"tenant"`
	Directory   id.ID         `json:"directory"`
	RedirectURI string        `json:"redirectUri"`     // where the provider sends the browser back
	State       secure.Secret `json:"state"`           // returned by the provider with the browser (CSRF protection)
	Scope       []string      `json:"scope,omitempty"` // replaces that of the directory, unless it is empty
}

// SocialLoginBegun is the URL at which a login starts, and its secrets, which SocialLogin returns
// with the authorization code.
type SocialLoginBegun struct {
	URL           string        `json:"url"`
	Verifier      secure.Secret `json:"verifier,omitempty"`
	Nonce         secure.Secret `json:"nonce,omitempty"`
	RequestSecret secure.Secret `json:"requestSecret,omitempty"`
}

// ProviderUser is the profile (claims) of a user at a provider, after a login there. A text is
// empty where the provider states none.
type ProviderUser struct {
	Tenant      id.ID `json:"tenant"`
	Directory   id.ID `json:"directory"`
	Application id.ID `json:"application,omitzero"` // through which the user logs in
	// Account is the id of the account, if one is created; zero for any. A repeated call with the
	// same id is idempotent: it returns the account as new again.
	Account id.ID `json:"account,omitzero"`
	// ExternalID is the provider's id of the user; where it is empty, the email serves as the id.
	ExternalID    string `json:"externalId"`
	Email         string `json:"email"`
	EmailVerified bool   `json:"emailVerified"`
	// EmailUnstated is for a provider that does not say whether the email is verified. The email of
	// a new account counts as Verified, but no other user gets that account by its email.
	EmailUnstated bool   `json:"emailUnstated,omitempty"`
	Username      string `json:"username,omitempty"` // empty: the email is the user name
	GivenName     string `json:"givenName,omitempty"`
	MiddleName    string `json:"middleName,omitempty"`
	Surname       string `json:"surname,omitempty"`
	// UserInfo is the user object of a social or OAuth provider, Attributes are those of a SAML
	// assertion. The mapping rules of the directory read them, and the provider data of the account
	// show them.
	UserInfo   json.RawMessage     `json:"userInfo,omitempty"`
	Attributes []ProviderAttribute `json:"attributes,omitempty"`
	Tokens     ProviderTokens      `json:"tokens,omitzero"`
	// CustomData is that of the account, if one is created; the mapping rules may add to it.
	CustomData customdata.Change `json:"customData,omitzero"`
}

// ProviderAttribute is an attribute of a SAML assertion.
type ProviderAttribute struct {
	Name       string   `json:"name"`
	NameFormat string   `json:"nameFormat,omitempty"`
	Values     []string `json:"values"`
}

// ProviderTokens are the tokens that a provider issued for a user. Their JSON is that of the
// provider data of an account.
type ProviderTokens struct {
	AccessToken       secure.Secret `json:"accessToken,omitempty"`
	AccessTokenSecret secure.Secret `json:"accessTokenSecret,omitempty"`
	RefreshToken      secure.Secret `json:"refreshToken,omitempty"`
}

// ProviderAccountResult is the account of a user of a provider.
type ProviderAccountResult struct {
	Account Account `json:"account"`
	IsNew   bool    `json:"isNew"`
}

// IsSocial reports whether a provider is a social, OAuth 2.0 or OpenID Connect provider: no cloud
// directory, and neither LDAP nor SAML.
func IsSocial(providerID string) bool {
	switch field.Fold(providerID) {
	case Native, "ldap", "ad", "saml":
		return false
	}
	return true
}

// SocialLogin is what a social provider returned to a client or a browser after a login there
// (docs/interface/applications.md#accounts-by-provider).
type SocialLogin struct {
	Provider          string        `json:"provider"` // providerId, case folded
	AccessToken       secure.Secret `json:"accessToken,omitempty"`
	AccessTokenSecret secure.Secret `json:"accessTokenSecret,omitempty"`
	Code              secure.Secret `json:"code,omitempty"`
	RedirectURI       string        `json:"redirectUri,omitempty"`

	// The account store in which an application looks for the directory of the provider, by href,
	// or by the key of an organization; where both are empty, all its account stores.
	AccountStore string `json:"accountStore,omitempty"`
	NameKey      string `json:"nameKey,omitempty"`

	// Verifier and Nonce are those of SocialLoginBegun. For twitter (OAuth 1.0a), AccessToken is the
	// request token, AccessTokenSecret its secret, and Code the verifier.
	Verifier secure.Secret `json:"verifier,omitempty"`
	Nonce    secure.Secret `json:"nonce,omitempty"`

	// CustomData is that of the account, if the login creates it.
	CustomData customdata.Change `json:"customData,omitzero"`
}

// Check returns apierr.Required unless the login has what its provider needs: either an access
// token or an authorization code; only an access token for Facebook and Twitter.
func (l SocialLogin) Check() error {
	switch {
	case l.AccessToken != "" && l.Code != "":
		return apierr.Required.Because("of accessToken and code exactly one can be given")
	case l.AccessToken == "" && (l.Provider == "facebook" || l.Provider == "twitter"):
		return apierr.Required.Because("accessToken is required for the provider %q", l.Provider)
	case l.AccessTokenSecret == "" && l.Provider == "twitter":
		return apierr.Required.Because("accessTokenSecret is required for the provider %q", l.Provider)
	case l.AccessToken == "" && l.Code == "":
		return apierr.Required.Because("one of accessToken and code is required")
	}
	return nil
}
