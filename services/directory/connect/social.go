package connect

import (
	"cmp"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/mappingrule"
	"github.com/doorward/doorward/pkg/secure"
)

// bearer sets the access token of a request (RFC 6750).
func bearer(token secure.Secret) func(http.Header) {
	return func(h http.Header) { h.Set("Authorization", "Bearer "+token.Reveal()) }
}

// withQuery adds query parameters to a URL.
func withQuery(address string, parameters ...string) string {
	query := url.Values{}
	for i := 0; i < len(parameters); i += 2 {
		query.Set(parameters[i], parameters[i+1])
	}
	if strings.Contains(address, "?") {
		return address + "&" + query.Encode()
	}
	return address + "?" + query.Encode()
}

// firstText returns the first of some members that is a text or a number.
func firstText(object map[string]any, names ...string) string {
	for _, name := range names {
		if value, ok := mappingrule.Text(object[name]); ok {
			return value
		}
	}
	return ""
}

func isTrue(object map[string]any, names ...string) bool {
	return firstText(object, names...) == "true"
}

// verifiedNames are the members of a user object that say whether its email is verified.
var verifiedNames = []string{"email_verified", "verified_email"}

// profile returns the user of a user object, by the names that providers use for its members.
func (s *providerLogin) profile(object map[string]any, raw json.RawMessage) (directoryapi.ProviderUser, error) {
	u := directoryapi.ProviderUser{
		ExternalID: firstText(object, "id", "sub"), Email: firstText(object, "email", "emailAddress"),
		EmailVerified: isTrue(object, verifiedNames...),
		GivenName:     firstText(object, "given_name", "first_name", "firstName"),
		MiddleName:    firstText(object, "middle_name"),
		Surname:       firstText(object, "family_name", "last_name", "lastName"), UserInfo: raw, Tokens: s.tokens,
	}
	if path := s.provider.IDField; path != "" {
		value, _ := mappingrule.Lookup(object, path)
		u.ExternalID, _ = mappingrule.Text(value)
	}
	if u.ExternalID == "" {
		return u, apierr.ProviderIncomplete.Because(
			"the user object of the provider %q has no %s", s.provider.ID, cmp.Or(s.provider.IDField, "id"))
	}
	return u, nil
}

// splitName fills in given name and surname from a full name.
func splitName(u *directoryapi.ProviderUser, name string) {
	if u.GivenName != "" || u.Surname != "" {
		return
	}
	name = strings.TrimSpace(name)
	if at := strings.LastIndex(name, " "); at > 0 {
		u.GivenName, u.Surname = strings.TrimSpace(name[:at]), name[at+1:]
		return
	}
	u.GivenName = name
}

// otherClientError is the error for a token that was issued to another client.
func (s *providerLogin) otherClientError() error {
	return apierr.ProviderOtherClient.Because(
		"the token of the provider %q was issued to another client than that of the directory", s.provider.ID)
}

// cannotBeAsked is the error for an access token of a provider that cannot be asked to which client
// it was issued.
func (s *providerLogin) cannotBeAsked() error {
	return apierr.ProviderOtherClient.Because(
		"the provider %q cannot be asked to which client it issued an access token: "+
			"log in with an authorization code, or set introspectionEndpoint of the directory's provider "+
			"(acceptForeignTokens admits them unasked)", s.provider.ID)
}

// checkSameUser refuses a user object of another user than that of the id token (OpenID Connect
// Core, section 5.3.2).
func (s *providerLogin) checkSameUser(subject string) error {
	if s.claims != nil && subject != firstText(s.claims, "sub") {
		return s.providerError("its id token and its user object are about different users")
	}
	return nil
}
