package directoryapi

import (
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/secure"
)

// IsSocial reports whether the accounts of a provider log in elsewhere on the web,
// other than by SAML.
func IsSocial(providerID string) bool {
	switch field.Fold(providerID) {
	case Native, "ldap", "ad", "saml":
		return false
	}
	return true
}

// SocialLogin is what a social provider gave to a client for who logged in there
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
