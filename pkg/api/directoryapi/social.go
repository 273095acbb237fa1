package directoryapi

import (
	"context"
	"encoding/json"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
)

// Providers is what peers ask of the directory service for users who have logged
// in at the provider of a directory.
type Providers interface {
	// ProviderAccount returns the account of a user of the provider of a mirror
	// directory, with what the provider states of the user written into it, or
	// creates it (docs/interface/applications.md#accounts-by-provider). Of parallel
	// calls for one user one creates the account, and all return it. It returns
	// apierr.NotFound for the directory, DirectoryDisabled, AccountDisabled,
	// AccountUnverified, AccountLocked, ProviderIncomplete for a user without an id or
	// an email, and Exists where the email belongs to an account that this user
	// cannot have: one of another user, unless both addresses are verified.
	ProviderAccount(context.Context, ProviderAccount) (ProvidedAccount, error)

	// SocialAccount asks the social or OAuth provider of a directory for the user of
	// a login, and returns the account as ProviderAccount does. It returns
	// apierr.Reference when the directory is not one of the provider that the login
	// names, RedirectURIMissing, ProviderRefused with what the provider said, and
	// ProviderOtherClient for a token that was issued to another client.
	SocialAccount(context.Context, SocialAccount) (ProvidedAccount, error)

	// BeginSocialLogin returns where a browser goes to log in at the social or OAuth
	// provider of a directory. It returns apierr.NotFound for the directory,
	// Reference for one without such a provider, and ProviderRefused.
	BeginSocialLogin(context.Context, BeginSocialLogin) (SocialLoginBegun, error)
}

// SocialAccount asks for the account of a login at a provider.
type SocialAccount struct {
	Tenant      id.ID       `json:"tenant"`
	Directory   id.ID       `json:"directory"`
	Application id.ID       `json:"application,omitzero"` // through which the user logs in
	Account     id.ID       `json:"account,omitzero"`     // as that of ProviderAccount
	Login       SocialLogin `json:"login"`
}

// BeginSocialLogin asks for a login that a browser begins.
type BeginSocialLogin struct {
	Tenant      id.ID         `json:"tenant"`
	Directory   id.ID         `json:"directory"`
	RedirectURI string        `json:"redirectUri"`     // where the provider sends the browser back
	State       secure.Secret `json:"state"`           // that it brings along
	Scope       []string      `json:"scope,omitempty"` // in place of the directory's
}

// SocialLoginBegun is where a login begins. The secrets come back with its code, in
// SocialLogin.
type SocialLoginBegun struct {
	URL           string        `json:"url"`
	Verifier      secure.Secret `json:"verifier,omitempty"`
	Nonce         secure.Secret `json:"nonce,omitempty"`
	RequestSecret secure.Secret `json:"requestSecret,omitempty"`
}

// ProviderAccount is the profile of a user at a provider, after a login there. A
// text that the provider did not state is empty.
type ProviderAccount struct {
	Tenant      id.ID `json:"tenant"`
	Directory   id.ID `json:"directory"`
	Application id.ID `json:"application,omitzero"` // through which the user logs in
	// Account is the id of the account, if one is created. A repeated call with it
	// returns the account as new again. Zero: any.
	Account id.ID `json:"account,omitzero"`
	// ExternalID is the provider's id of the user. Where it is empty, the email is.
	ExternalID    string `json:"externalId"`
	Email         string `json:"email"`
	EmailVerified bool   `json:"emailVerified"`
	// EmailUnstated is for a provider that says nothing of whether the email is
	// verified. A new account counts as Verified, and is found by nobody else's email.
	EmailUnstated bool   `json:"emailUnstated,omitempty"`
	Username      string `json:"username,omitempty"` // empty: the email
	GivenName     string `json:"givenName,omitempty"`
	MiddleName    string `json:"middleName,omitempty"`
	Surname       string `json:"surname,omitempty"`
	// UserInfo is the user object of a social or OAuth provider, and Attributes are
	// those of a SAML assertion. The mapping rules of the directory read them, and
	// the provider data of the account shows them.
	UserInfo   json.RawMessage     `json:"userInfo,omitempty"`
	Attributes []ProviderAttribute `json:"attributes,omitempty"`
	Tokens     ProviderTokens      `json:"tokens,omitzero"`
}

// ProviderAttribute is an attribute of a SAML assertion.
type ProviderAttribute struct {
	Name       string   `json:"name"`
	NameFormat string   `json:"nameFormat,omitempty"`
	Values     []string `json:"values"`
}

// ProviderTokens are what a provider issued for a user. Their JSON is that of the
// provider data of an account.
type ProviderTokens struct {
	AccessToken       secure.Secret `json:"accessToken,omitempty"`
	AccessTokenSecret secure.Secret `json:"accessTokenSecret,omitempty"`
	RefreshToken      secure.Secret `json:"refreshToken,omitempty"`
}

// ProvidedAccount is the account of a user of a provider.
type ProvidedAccount struct {
	Account Account `json:"account"`
	IsNew   bool    `json:"isNew"`
}

// IsSocial reports whether the accounts of a provider log in elsewhere on the web,
// other than by SAML.
func IsSocial(providerID string) bool {
	switch field.Fold(providerID) {
	case Native, "ldap", "ad", "saml":
		return false
	}
	return true
}

// SocialLogin is what a social provider returned to a client after a login there
// (docs/interface/applications.md#accounts-by-provider).
type SocialLogin struct {
	Provider          string        `json:"provider"` // folded
	AccessToken       secure.Secret `json:"accessToken,omitempty"`
	AccessTokenSecret secure.Secret `json:"accessTokenSecret,omitempty"`
	Code              secure.Secret `json:"code,omitempty"`
	RedirectURI       string        `json:"redirectUri,omitempty"`

	// Where an application looks for the directory of the provider: by the href of
	// an account store or the key of an organization; both empty is everywhere.
	AccountStore string `json:"accountStore,omitempty"`
	NameKey      string `json:"nameKey,omitempty"`

	// Verifier and Nonce are those of SocialLoginBegun. Of twitter, the request token
	// comes back as AccessToken, its secret as AccessTokenSecret, and the verifier
	// as Code.
	Verifier secure.Secret `json:"verifier,omitempty"`
	Nonce    secure.Secret `json:"nonce,omitempty"`
}

// Check refuses with apierr.Required what does not prove a login. Most providers
// leave the choice between an access token and an authorization code.
func (l SocialLogin) Check() error {
	switch {
	case l.AccessToken != "" && l.Code != "":
		return apierr.Required.Because("of accessToken and code exactly one can be given")
	case l.AccessToken == "" && (l.Provider == "facebook" || l.Provider == "github" || l.Provider == "twitter"):
		return apierr.Required.Because("accessToken is required for the provider %q", l.Provider)
	case l.AccessTokenSecret == "" && l.Provider == "twitter":
		return apierr.Required.Because("accessTokenSecret is required for the provider %q", l.Provider)
	case l.AccessToken == "" && l.Code == "":
		return apierr.Required.Because("one of accessToken and code is required")
	}
	return nil
}
