package connect

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
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

func (s *session) google(ctx context.Context) (directoryapi.ProviderAccount, error) {
	if s.login.Code == "" {
		if err := s.wantOwnToken(ctx); err != nil {
			return directoryapi.ProviderAccount{}, err
		}
	}
	object, kept, err := s.get(ctx, s.provider.Resource, bearer(s.tokens.AccessToken))
	if err != nil {
		return directoryapi.ProviderAccount{}, err
	}
	if err := s.wantSameUser(text(object, "id", "sub")); err != nil {
		return directoryapi.ProviderAccount{}, err
	}
	hd, own := s.provider.HD, cmp.Or(text(object, "hd"), text(s.claims, "hd"))
	if hd != "" && hd != "*" && !strings.EqualFold(hd, own) {
		return directoryapi.ProviderAccount{}, s.refuse("the user does not belong to the hosted domain " + hd)
	}
	return s.user(object, kept)
}

// wantOwnToken refuses an access token that was issued to another client: the operator of
// that one could log in as any of its users.
func (s *session) wantOwnToken(ctx context.Context) error {
	info, _, err := s.get(ctx, withQuery(s.provider.TokenInfo, "access_token", s.tokens.AccessToken.Reveal()), nil)
	if err != nil {
		return err
	}
	if audience := text(info, "aud", "audience", "azp", "issued_to"); audience != s.provider.ClientID {
		return s.otherClient()
	}
	return nil
}

func (s *session) otherClient() error {
	return apierr.ProviderOtherClient.Because(
		"the token of the provider %q was issued to another client than that of the directory", s.provider.ID)
}

// wantSameUser refuses a user object of somebody else than the id token is about
// (OpenID Connect Core, section 5.3.2).
func (s *session) wantSameUser(subject string) error {
	if s.claims != nil && subject != text(s.claims, "sub") {
		return s.refuse("its id token and its user object are about different users")
	}
	return nil
}

// facebookFields are asked for by name: without them the answer has the id and the
// name alone.
const facebookFields = "id,name,email,first_name,middle_name,last_name"

func (s *session) facebook(ctx context.Context) (directoryapi.ProviderAccount, error) {
	proof := hmac.New(sha256.New, []byte(s.provider.ClientSecret.Reveal()))
	proof.Write([]byte(s.tokens.AccessToken.Reveal()))
	// With the proof, a token that was issued to another client is refused.
	address := withQuery(s.provider.Resource, "fields", facebookFields, "appsecret_proof", hex.EncodeToString(proof.Sum(nil)))
	object, kept, err := s.get(ctx, address, bearer(s.tokens.AccessToken))
	if err != nil {
		return directoryapi.ProviderAccount{}, err
	}
	u, err := s.user(object, kept)
	u.EmailVerified = u.Email != "" // it shares none that is not confirmed
	splitName(&u, text(object, "name"))
	return u, err
}

func (s *session) github(ctx context.Context) (directoryapi.ProviderAccount, error) {
	object, kept, err := s.get(ctx, s.provider.Resource, bearer(s.tokens.AccessToken))
	if err != nil {
		return directoryapi.ProviderAccount{}, err
	}
	u, err := s.user(object, kept)
	if err != nil {
		return u, err
	}
	splitName(&u, text(object, "name"))
	u.EmailVerified = u.Email != "" // only a verified one can be on the public profile
	answer, body, err := s.call(ctx, strings.TrimSuffix(s.provider.Resource, "/")+"/emails", bearer(s.tokens.AccessToken))
	if err != nil {
		return u, s.failed(err)
	}
	var emails []struct {
		Email    string `json:"email"`
		Primary  bool   `json:"primary"`
		Verified bool   `json:"verified"`
	}
	if answer.StatusCode != http.StatusOK || json.Unmarshal(body, &emails) != nil {
		return u, nil // the token's scope has no emails
	}
	best := -1
	for _, e := range emails {
		rank := 0
		if e.Primary {
			rank++
		}
		if e.Verified {
			rank += 2
		}
		if e.Email != "" && rank > best {
			best, u.Email, u.EmailVerified = rank, e.Email, e.Verified
		}
	}
	return u, nil
}

func (s *session) linkedin(ctx context.Context) (directoryapi.ProviderAccount, error) {
	object, kept, err := s.get(ctx, s.provider.Resource, bearer(s.tokens.AccessToken))
	if err != nil {
		return directoryapi.ProviderAccount{}, err
	}
	u, err := s.user(object, kept)
	if _, stated := object["email_verified"]; !stated {
		u.EmailVerified = u.Email != "" // the older user object has confirmed ones alone
	}
	return u, err
}
