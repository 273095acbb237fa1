package provider

import (
	"regexp"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/saml"
	"github.com/doorward/doorward/services/directory"
	"github.com/doorward/doorward/services/directory/store"
)

// Limits of a provider's members.
const (
	maxCredential  = 1000 // characters of a client id or secret
	maxURL         = 2000
	maxCertificate = 20_000
	maxScopes      = 50
)

// textMember is a member of a provider that is a text, with its validation.
type textMember struct {
	name     string
	in       field.Text
	to       **string
	most     int                                      // characters
	check    func(name, value string) (string, error) // returns the normal form; nil: any text
	fallback string                                   // where the member is absent or null; empty: none
}

// textMembers returns the members of a body that are texts.
func (in NewProvider) textMembers(to *store.ProviderSettings, secret **string) []textMember {
	redirect := in.RedirectURI
	if !redirect.Present {
		redirect = in.RedirectURL
	}
	return []textMember{
		{name: "clientId", in: in.ClientID, to: &to.ClientID, most: maxCredential},
		{name: "clientSecret", in: in.ClientSecret, to: secret, most: maxCredential},
		{name: "redirectUri", in: redirect, to: &to.RedirectURI, most: maxURL},
		{name: "hd", in: in.HD, to: &to.HD, most: directory.MaxName},
		{
			name: "display", in: in.Display, to: &to.Display, most: directory.MaxName,
			check: enumOf("page", "popup", "touch", "wap"),
		},
		{
			name: "accessType", in: in.AccessType, to: &to.AccessType, most: directory.MaxName,
			check: enumOf("online", "offline"),
		},
		{
			name: "authorizationEndpoint", in: in.AuthorizationEndpoint, to: &to.AuthorizationEndpoint, most: maxURL,
			check: field.URL("https"),
		},
		{name: "tokenEndpoint", in: in.TokenEndpoint, to: &to.TokenEndpoint, most: maxURL, check: field.URL("https")},
		{
			name: "resourceEndpoint", in: in.ResourceEndpoint, to: &to.ResourceEndpoint, most: maxURL,
			check: field.URL("https"),
		},
		{
			name: "introspectionEndpoint", in: in.IntrospectionEndpoint, to: &to.IntrospectionEndpoint, most: maxURL,
			check: field.URL("https"),
		},
		{name: "discoveryUrl", in: in.DiscoveryURL, to: &to.DiscoveryURL, most: maxURL, check: field.URL("https")},
		{name: "idField", in: in.IDField, to: &to.IDField, most: directory.MaxName, check: idField, fallback: "id"},
		{name: "accessTokenType", in: in.AccessTokenType, to: &to.AccessTokenType, most: directory.MaxName,
			check: enumOf("bearer", "access_token", "oauth_token"), fallback: "bearer"},
		{name: "ssoLoginUrl", in: in.SSOLoginURL, to: &to.SSOLoginURL, most: maxURL, check: field.URL("https", "http")},
		{name: "ssoLogoutUrl", in: in.SSOLogoutURL, to: &to.SSOLogoutURL, most: maxURL,
			check: field.URL("https", "http")},
		{name: "encodedX509SigningCert", in: in.EncodedX509SigningCert, to: &to.EncodedX509SigningCert,
			most:  maxCertificate,
			check: field.Certificate},
		{name: "encodedX509SigningCertNext", in: in.EncodedX509SigningCertNext, to: &to.EncodedX509SigningCertNext,
			most:  maxCertificate,
			check: field.Certificate},
		{name: "entityId", in: in.EntityID, to: &to.EntityID, most: maxURL},
		{name: "metadata", in: in.Metadata, to: &to.Metadata, most: saml.MaxMetadata},
		{name: "metadataUrl", in: in.MetadataURL, to: &to.MetadataURL, most: maxURL, check: field.URL("https")},
		{name: "requestSignatureAlgorithm", in: in.RequestSignatureAlgorithm, to: &to.RequestSignatureAlgorithm,
			most:  directory.MaxName,
			check: enumOf("RSA-SHA256", "RSA-SHA1"), fallback: "RSA-SHA256"},
	}
}

// read validates the member and writes its value.
func (t textMember) read(need presence) error {
	if need == optional && !t.in.Given() {
		*t.to = nil
		if t.fallback != "" {
			*t.to = &t.fallback
		}
		return nil
	}
	if *t.to != nil && field.Unchanged(t.in, **t.to) {
		return nil
	}
	value, err := field.Verbatim(t.in, t.name, t.most)
	*t.to = &value
	if err != nil || t.check == nil {
		return err
	}
	value, err = t.check(t.name, value)
	return err
}

// enumOf returns a validation that accepts one of the values in any letter case; another value is
// 2003.
func enumOf(values ...string) func(name, value string) (string, error) {
	return func(name, value string) (string, error) { return field.Enum(field.Some(value), name, "", values...) }
}

// idFieldPattern is a path into the provider's user object: names joined by dots, each followed by
// the indexes of array elements.
var idFieldPattern = regexp.MustCompile(`^[^.\[\]\s\pC]+(\[[0-9]{1,4}\])*(\.[^.\[\]\s\pC]+(\[[0-9]{1,4}\])*)*$`)

func idField(name, value string) (string, error) {
	if !idFieldPattern.MatchString(value) {
		return "", apierr.Format.Because("%s is not a path such as id, data.id or items[0].user_id", name)
	}
	return value, nil
}
