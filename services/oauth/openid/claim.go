package openid

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/api/mfaapi"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/services/oauth/attribute"
	"github.com/doorward/doorward/services/oauth/store"
)

// maxGroups is how many groups a token names. Of more it says groups_overage, and UserInfo has all.
const maxGroups = 100

// scopeClaims are the claims of the built-in scopes, with their attributes (OpenID Connect Core, section 5.4). picture
// and address have no attribute of their own: they are mapped from customData.
var scopeClaims = map[string]map[string]string{
	"profile": {
		"name": "fullName", "given_name": "givenName", "middle_name": "middleName", "family_name": "surname",
		"preferred_username": "username", "updated_at": "modifiedAt", "locale": "locale",
	},
	"email":        {"email": "email", "email_verified": "emailVerified"},
	"phone":        {"phone_number": attribute.Phone, "phone_number_verified": "phoneVerified"},
	"groups":       {"groups": attribute.Groups},
	"organization": {"organization": "organization"},
}

// accountClaims adds the claims of an account that scopes, the parameter claims and the mappings of the provider give to
// a token or to UserInfo. A claim without a value is left out.
func (s *Service) accountClaims(ctx context.Context, i issuer, to map[string]any, account directoryapi.Account,
	login store.Login, scopes, requested []string, place string) error {
	wanted := i.wantedClaims(scopes, requested, place)
	if len(wanted) == 0 {
		return nil
	}
	p, err := s.person(ctx, i, account, login, slices.Collect(maps.Values(wanted)))
	if err != nil {
		return err
	}
	for name, source := range wanted {
		value := p.Value(source)
		switch {
		case value == nil || value == "":
		case source == attribute.Groups && place != inUserInfo && len(p.Place.Groups) > maxGroups:
			to["groups_overage"] = true
		default:
			to[name] = value
		}
	}
	return nil
}

// wantedClaims returns the attributes of the claims of a place, by the names of the claims.
func (i issuer) wantedClaims(scopes, requested []string, place string) map[string]string {
	wanted := map[string]string{}
	for scope, claims := range scopeClaims {
		given := place == inUserInfo && slices.Contains(scopes, scope)
		for name, source := range claims {
			if given || slices.Contains(requested, name) {
				wanted[name] = source
			}
		}
	}
	for _, m := range i.provider.Settings.Claims {
		given := len(m.Scopes) == 0 || slices.ContainsFunc(m.Scopes, func(name string) bool {
			return slices.Contains(scopes, name)
		})
		if given && slices.Contains(m.In, place) || slices.Contains(requested, m.Claim) {
			wanted[m.Claim] = m.Source
		}
	}
	return wanted
}

// person reads what attributes of an account need.
func (s *Service) person(ctx context.Context, i issuer, account directoryapi.Account, login store.Login,
	attributes []string) (attribute.Person, error) {
	p := attribute.Person{Account: account}
	at := id.Ref{Tenant: i.app.TenantID, ID: account.ID}
	needs := func(prefix string) bool {
		return slices.ContainsFunc(attributes, func(name string) bool { return strings.HasPrefix(name, prefix) })
	}
	if custom, directory := needs(attribute.CustomData), needs("directory.name"); custom || directory {
		profile, err := s.Directory.Profile(ctx, directoryapi.ProfileRequest{Ref: at, CustomData: custom,
			Directory: directory})
		if err != nil {
			return p, err
		}
		p.Directory = profile.Directory
		if custom {
			numbers := json.NewDecoder(bytes.NewReader(profile.CustomData))
			numbers.UseNumber()
			if err := numbers.Decode(&p.CustomData); err != nil {
				return p, err
			}
		}
	}
	if needs(attribute.Groups) || needs("organization") {
		place, err := s.Application.LoginContext(ctx, applicationapi.AskLoginContext{
			Tenant: at.Tenant, Application: i.app.ID, Account: at.ID, Organization: login.Organization,
		})
		if err != nil {
			return p, err
		}
		p.Place = place
	}
	if needs(attribute.Phone) {
		factors, err := s.Factors.FactorsOf(ctx, at)
		if err != nil {
			return p, err
		}
		isPhone := func(f mfaapi.AccountFactor) bool { return f.Type == mfaapi.SMS && f.Usable }
		if n := slices.IndexFunc(factors.Items, isPhone); n >= 0 {
			p.Phone = factors.Items[n].Number
		}
	}
	return p, nil
}

// joinScopes writes scopes as a token has them.
func joinScopes(scopes []string) string { return strings.Join(scopes, " ") }
