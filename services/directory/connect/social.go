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

func bearer(token secure.Secret) func(http.Header) {
	return func(h http.Header) { h.Set("Authorization", "Bearer "+token.Reveal()) }
}

// withQuery adds parameters to an address.
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

// text returns the first of some members that is a text or a number.
func text(object map[string]any, names ...string) string {
	for _, name := range names {
		if value, ok := mappingrule.Text(object[name]); ok {
			return value
		}
	}
	return ""
}

func isTrue(object map[string]any, names ...string) bool { return text(object, names...) == "true" }

// verifiedNames are the members of a user object that say whether its email is verified.
var verifiedNames = []string{"email_verified", "verified_email"}

// user makes the answer of a user object, by the names that providers have for its
// members.
func (s *session) user(object map[string]any, kept json.RawMessage) (directoryapi.ProviderAccount, error) {
	u := directoryapi.ProviderAccount{
		ExternalID: text(object, "id", "sub"), Email: text(object, "email", "emailAddress"),
		EmailVerified: isTrue(object, verifiedNames...),
		GivenName:     text(object, "given_name", "first_name", "firstName"), MiddleName: text(object, "middle_name"),
		Surname: text(object, "family_name", "last_name", "lastName"), UserInfo: kept, Tokens: s.tokens,
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

// splitName fills in the parts of a name that a provider states as one text.
func splitName(u *directoryapi.ProviderAccount, name string) {
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

func (s *session) otherClient() error {
	return apierr.ProviderOtherClient.Because(
		"the token of the provider %q was issued to another client than that of the directory", s.provider.ID)
}

// checkSameUser refuses a user object of somebody else than the id token is about
// (OpenID Connect Core, section 5.3.2).
func (s *session) checkSameUser(subject string) error {
	if s.claims != nil && subject != text(s.claims, "sub") {
		return s.refuse("its id token and its user object are about different users")
	}
	return nil
}
