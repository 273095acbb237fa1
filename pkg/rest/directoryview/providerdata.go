package directoryview

import (
	"encoding/json"
	"errors"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/secure"
)

// providerData is the member providerData of a body that creates an account: a social login, or
// the link of a representation that a client sends back, which is ignored.
type providerData struct {
	ProviderID        field.Text                             `json:"providerId"`
	AccessToken       field.Nullable[secure.Secret]          `json:"accessToken"`
	AccessTokenSecret field.Nullable[secure.Secret]          `json:"accessTokenSecret"`
	Code              field.Nullable[secure.Secret]          `json:"code"`
	RedirectURI       field.Text                             `json:"redirectUri"`
	AccountStore      field.Nullable[directoryapi.StoreName] `json:"accountStore"`

	isLink bool
}

// UnmarshalJSON decodes the members, and refuses unknown members.
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

// ReadProviderData decodes and validates the social login of a member providerData.
func ReadProviderData(data []byte) (*directoryapi.SocialLogin, error) {
	var d providerData
	if err := json.Unmarshal(data, &d); err != nil {
		if refusal, ok := errors.AsType[*apierr.Error](err); ok {
			return nil, refusal
		}
		return nil, apierr.WrongType.Because("providerData must be an object")
	}
	if d.isLink {
		return nil, apierr.Required.Because("providerData.providerId is required; it cannot be null, empty or blank")
	}
	return d.login()
}

// Bounds of the texts of a social login, in characters.
const (
	maxProviderID  = 255
	maxRedirectURI = 2000
)

// login validates the members.
func (d providerData) login() (*directoryapi.SocialLogin, error) {
	provider, err := field.Required(d.ProviderID, "providerData.providerId", maxProviderID)
	if err != nil {
		return nil, err
	}
	redirect, err := field.Optional(d.RedirectURI, "providerData.redirectUri", maxRedirectURI)
	if err != nil {
		return nil, err
	}
	at, err := directoryapi.ReadStoreName(d.AccountStore, "providerData.accountStore")
	if err != nil {
		return nil, err
	}
	l := directoryapi.SocialLogin{
		Provider: field.Fold(provider), AccessToken: d.AccessToken.Or(""),
		AccessTokenSecret: d.AccessTokenSecret.Or(""),
		Code:              d.Code.Or(""),
		AccountStore:      at.Href, NameKey: at.NameKey,
	}
	if redirect != nil {
		l.RedirectURI = *redirect
	}
	return &l, l.Check()
}
