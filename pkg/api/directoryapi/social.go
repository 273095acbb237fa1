package directoryapi

import (
	"encoding/json"

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
// (resolutions, section 5.2).
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

// providerData is the member of that name in a body that creates an account: a
// social login, or the link of a representation that is sent back, which says
// nothing.
type providerData struct {
	ProviderID        field.Text              `json:"providerId"`
	AccessToken       field.Of[secure.Secret] `json:"accessToken"`
	AccessTokenSecret field.Of[secure.Secret] `json:"accessTokenSecret"`
	Code              field.Of[secure.Secret] `json:"code"`
	RedirectURI       field.Text              `json:"redirectUri"`
	AccountStore      field.Of[StoreName]     `json:"accountStore"`

	isLink bool
}

// UnmarshalJSON reads the members, and refuses others.
func (d *providerData) UnmarshalJSON(data []byte) error {
	var link map[string]json.RawMessage
	if err := json.Unmarshal(data, &link); err == nil {
		if _, d.isLink = link["href"]; d.isLink {
			return nil
		}
	}
	type members providerData // without this method
	return field.Nested(data, (*members)(d), nil)
}

// Bounds of the texts of a social login, in characters.
const (
	maxProviderID  = 255
	maxRedirectURI = 2000
)

// login reads and checks the members.
func (d providerData) login() (*SocialLogin, error) {
	provider, err := field.Required(d.ProviderID, "providerData.providerId", maxProviderID)
	if err != nil {
		return nil, err
	}
	redirect, err := field.Optional(d.RedirectURI, "providerData.redirectUri", maxRedirectURI)
	if err != nil {
		return nil, err
	}
	at, err := ReadStoreName(d.AccountStore, "providerData.accountStore")
	if err != nil {
		return nil, err
	}
	l := SocialLogin{
		Provider: field.Fold(provider), AccessToken: d.AccessToken.Or(""), AccessTokenSecret: d.AccessTokenSecret.Or(""), Code: d.Code.Or(""),
		AccountStore: at.Href, NameKey: at.NameKey,
	}
	if redirect != nil {
		l.RedirectURI = *redirect
	}
	return &l, l.Check()
}
