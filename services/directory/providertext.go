package directory

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/services/directory/store"
)

// Limits of a provider's members, for which the interface names none.
const (
	maxCredential  = 1000 // characters of a client id or secret
	maxURL         = 2000
	maxCertificate = 20_000
	maxScopes      = 50
)

// providerText is a member of a provider that holds a text.
type providerText struct {
	name     string
	in       field.Text
	to       **string
	most     int                                      // characters
	check    func(name, value string) (string, error) // gives the normal form; nil: any text
	fallback string                                   // where the member is absent or null; empty: none
}

func (in NewProvider) texts(to *store.ProviderSettings, secret **string) []providerText {
	redirect := in.RedirectURI
	if !redirect.Present {
		redirect = in.RedirectURL
	}
	return []providerText{
		{name: "clientId", in: in.ClientID, to: &to.ClientID, most: maxCredential},
		{name: "clientSecret", in: in.ClientSecret, to: secret, most: maxCredential},
		{name: "redirectUri", in: redirect, to: &to.RedirectURI, most: maxURL, check: absoluteURL()},
		{name: "hd", in: in.HD, to: &to.HD, most: maxName},
		{name: "display", in: in.Display, to: &to.Display, most: maxName, check: enumOf("page", "popup", "touch", "wap")},
		{name: "accessType", in: in.AccessType, to: &to.AccessType, most: maxName, check: enumOf("online", "offline")},
		{name: "authorizationEndpoint", in: in.AuthorizationEndpoint, to: &to.AuthorizationEndpoint, most: maxURL, check: absoluteURL("https")},
		{name: "tokenEndpoint", in: in.TokenEndpoint, to: &to.TokenEndpoint, most: maxURL, check: absoluteURL("https")},
		{name: "resourceEndpoint", in: in.ResourceEndpoint, to: &to.ResourceEndpoint, most: maxURL, check: absoluteURL("https")},
		{name: "idField", in: in.IDField, to: &to.IDField, most: maxName, check: idField, fallback: "id"},
		{name: "accessTokenType", in: in.AccessTokenType, to: &to.AccessTokenType, most: maxName,
			check: enumOf("bearer", "access_token", "oauth_token"), fallback: "bearer"},
		{name: "ssoLoginUrl", in: in.SSOLoginURL, to: &to.SSOLoginURL, most: maxURL, check: absoluteURL("https", "http")},
		{name: "ssoLogoutUrl", in: in.SSOLogoutURL, to: &to.SSOLogoutURL, most: maxURL, check: absoluteURL("https", "http")},
		{name: "encodedX509SigningCert", in: in.EncodedX509SigningCert, to: &to.EncodedX509SigningCert, most: maxCertificate, check: pemCertificate},
		{name: "requestSignatureAlgorithm", in: in.RequestSignatureAlgorithm, to: &to.RequestSignatureAlgorithm, most: maxName,
			check: enumOf("RSA-SHA256", "RSA-SHA1"), fallback: "RSA-SHA256"},
	}
}

func (t providerText) read(need need) error {
	if need == mayHave && !t.in.Given() {
		*t.to = nil
		if t.fallback != "" {
			*t.to = &t.fallback
		}
		return nil
	}
	value, err := verbatim(t.in, t.name, t.most)
	if err == nil && t.check != nil {
		value, err = t.check(t.name, value)
	}
	*t.to = &value
	return err
}

// verbatim reads a text that must have a value, and keeps the white space around
// it: it means something to the provider, not here.
func verbatim(in field.Text, name string, most int) (string, error) {
	if _, err := field.Required(in, name, most); err != nil {
		return "", err
	}
	_, err := field.Optional(in, name, most)
	return in.Value, err
}

// enumOf takes one of the values in any letter case: else 2003.
func enumOf(values ...string) func(name, value string) (string, error) {
	return func(name, value string) (string, error) { return field.Enum(field.Some(value), name, "", values...) }
}

// absoluteURL takes a URL with one of the schemes and a host; without schemes,
// also that of an application on a telephone, such as myapp:/callback. A
// fragment, a name or a password has no place in any of them. Else 2006.
func absoluteURL(schemes ...string) func(name, value string) (string, error) {
	return func(name, value string) (string, error) {
		u, err := url.Parse(value)
		switch {
		case err != nil || !u.IsAbs() || u.User != nil || u.Fragment != "" || strings.ContainsFunc(value, unicode.IsSpace):
			return "", apierr.Format.Because("%s is not an absolute URL", name)
		case len(schemes) > 0 && (u.Hostname() == "" || !slices.Contains(schemes, u.Scheme)):
			return "", apierr.Format.Because("%s is not an absolute URL with the scheme %s", name, strings.Join(schemes, " or "))
		}
		return value, nil
	}
}

// idFieldPattern is a path into the provider's user object: names joined by
// dots, each followed by the places in the arrays that it holds.
var idFieldPattern = regexp.MustCompile(`^[^.\[\]\s\pC]+(\[[0-9]{1,4}\])*(\.[^.\[\]\s\pC]+(\[[0-9]{1,4}\])*)*$`)

func idField(name, value string) (string, error) {
	if !idFieldPattern.MatchString(value) {
		return "", apierr.Format.Because("%s is not a path such as id, data.id or items[0].user_id", name)
	}
	return value, nil
}

// pemCertificate takes one X.509 certificate in PEM with its begin and end lines.
func pemCertificate(name, value string) (string, error) {
	block, rest := pem.Decode([]byte(value))
	if block == nil || block.Type != "CERTIFICATE" || len(bytes.TrimSpace(rest)) > 0 {
		return "", apierr.Format.Because("%s is not one certificate in PEM, from its begin line to its end line", name)
	}
	if _, err := x509.ParseCertificate(block.Bytes); err != nil {
		return "", apierr.Format.Because("%s is not an X.509 certificate", name)
	}
	return value, nil
}
