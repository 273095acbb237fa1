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
	"github.com/doorward/doorward/services/oauth/relyingparty"
	"github.com/doorward/doorward/services/oauth/store"
)

// maxGroups is how many groups a token names. Of more it says groups_overage, and UserInfo has all.
const maxGroups = 100

// person is an account with what claims may say of it. What is not asked for is not read.
type person struct {
	directoryapi.Account
	place      applicationapi.LoginContext
	directory  *directoryapi.Directory
	customData map[string]any
	phone      string // the number of a verified phone
}

// sources are the attributes that a claim may have the value of. Those of customData are named by their members,
// customData.address.city.
var sources = map[string]func(person) any{
	"username":   func(p person) any { return p.Username },
	"email":      func(p person) any { return p.Email },
	"givenName":  func(p person) any { return optional(p.GivenName) },
	"middleName": func(p person) any { return optional(p.MiddleName) },
	"surname":    func(p person) any { return optional(p.Surname) },
	"fullName":   func(p person) any { return p.FullName() },
	"locale":     func(p person) any { return optional(p.Locale) },
	"status":     func(p person) any { return p.Status },
	"createdAt":  func(p person) any { return p.CreatedAt.Unix() },
	"modifiedAt": func(p person) any { return p.ModifiedAt.Unix() },

	sourceGroups:     func(p person) any { return p.place.Groups },
	"directory.id":   func(p person) any { return p.DirectoryID.String() },
	"directory.name": func(p person) any { return p.directory.Name },
	"organization.id": ofOrganization(func(o applicationapi.LoginOrganization) any {
		return o.ID.String()
	}),
	"organization.name":    ofOrganization(func(o applicationapi.LoginOrganization) any { return o.Name }),
	"organization.nameKey": ofOrganization(func(o applicationapi.LoginOrganization) any { return o.NameKey }),
	"organization":         ofOrganization(func(o applicationapi.LoginOrganization) any { return o }),
}

const (
	sourceGroups     = "groups.name"
	sourcePhone      = "phone"
	sourceCustomData = "customData."
)

func ofOrganization(value func(applicationapi.LoginOrganization) any) func(person) any {
	return func(p person) any {
		if p.place.Organization == nil {
			return nil
		}
		return value(*p.place.Organization)
	}
}

func optional(text *string) any {
	if text == nil {
		return nil
	}
	return *text
}

// isSource reports whether a mapping may name an attribute.
func isSource(name string) bool {
	path, isCustom := strings.CutPrefix(name, sourceCustomData)
	return sources[name] != nil || isCustom && len(name) <= relyingparty.MaxText && !slices.Contains(strings.Split(path, "."), "")
}

// scopeClaims are the claims of the built-in scopes, with their attributes (OpenID Connect Core, section 5.4). picture
// and address have no attribute of their own: they are mapped from customData.
var scopeClaims = map[string]map[string]string{
	"profile": {
		"name": "fullName", "given_name": "givenName", "middle_name": "middleName", "family_name": "surname",
		"preferred_username": "username", "updated_at": "modifiedAt", "locale": "locale",
	},
	"email":        {"email": "email", "email_verified": "emailVerified"},
	"phone":        {"phone_number": sourcePhone, "phone_number_verified": "phoneVerified"},
	"groups":       {"groups": sourceGroups},
	"organization": {"organization": "organization"},
}

// value returns an attribute of a person; nil: there is none.
func (p person) value(source string) any {
	switch source {
	case "emailVerified":
		return p.EmailVerificationStatus == directoryapi.Verified && !p.EmailAssumed
	case sourcePhone:
		return p.phone
	case "phoneVerified":
		if p.phone == "" {
			return nil
		}
		return true
	}
	path, isCustom := strings.CutPrefix(source, sourceCustomData)
	if !isCustom {
		return sources[source](p)
	}
	var at any = p.customData
	for member := range strings.SplitSeq(path, ".") {
		object, _ := at.(map[string]any)
		at = object[member]
	}
	return at
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
		value := p.value(source)
		switch {
		case value == nil || value == "":
		case source == sourceGroups && place != inUserInfo && len(p.place.Groups) > maxGroups:
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
	attributes []string) (person, error) {
	p := person{Account: account}
	at := id.Ref{Tenant: i.app.TenantID, ID: account.ID}
	needs := func(prefix string) bool {
		return slices.ContainsFunc(attributes, func(name string) bool { return strings.HasPrefix(name, prefix) })
	}
	if custom, directory := needs(sourceCustomData), needs("directory.name"); custom || directory {
		profile, err := s.Directory.Profile(ctx, directoryapi.ProfileRequest{Ref: at, CustomData: custom,
			Directory: directory})
		if err != nil {
			return p, err
		}
		p.directory = profile.Directory
		if custom {
			numbers := json.NewDecoder(bytes.NewReader(profile.CustomData))
			numbers.UseNumber()
			if err := numbers.Decode(&p.customData); err != nil {
				return p, err
			}
		}
	}
	if needs(sourceGroups) || needs("organization") {
		place, err := s.Application.LoginContext(ctx, applicationapi.AskLoginContext{
			Tenant: at.Tenant, Application: i.app.ID, Account: at.ID, Organization: login.Organization,
		})
		if err != nil {
			return p, err
		}
		p.place = place
	}
	if needs(sourcePhone) {
		factors, err := s.Factors.FactorsOf(ctx, at)
		if err != nil {
			return p, err
		}
		isPhone := func(f mfaapi.AccountFactor) bool { return f.Type == mfaapi.SMS && f.Usable }
		if n := slices.IndexFunc(factors.Items, isPhone); n >= 0 {
			p.phone = factors.Items[n].Number
		}
	}
	return p, nil
}

// joinScopes writes scopes as a token has them.
func joinScopes(scopes []string) string { return strings.Join(scopes, " ") }
