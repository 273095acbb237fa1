package openid

import (
	"slices"
	"strings"

	"github.com/doorward/doorward/pkg/api/directoryapi"
)

// sources are the attributes of an account that a claim may have the value of.
var sources = map[string]func(directoryapi.Account) any{
	"username":   func(a directoryapi.Account) any { return a.Username },
	"email":      func(a directoryapi.Account) any { return a.Email },
	"givenName":  func(a directoryapi.Account) any { return optional(a.GivenName) },
	"middleName": func(a directoryapi.Account) any { return optional(a.MiddleName) },
	"surname":    func(a directoryapi.Account) any { return optional(a.Surname) },
	"fullName":   func(a directoryapi.Account) any { return a.FullName() },
	"locale":     func(a directoryapi.Account) any { return optional(a.Locale) },
	"status":     func(a directoryapi.Account) any { return a.Status },
	"createdAt":  func(a directoryapi.Account) any { return a.CreatedAt.Unix() },
	"modifiedAt": func(a directoryapi.Account) any { return a.ModifiedAt.Unix() },
}

func isSource(name string) bool { return sources[name] != nil }

func optional(text *string) any {
	if text == nil {
		return nil
	}
	return *text
}

// scopeClaims are the claims of the built-in scopes that have the value of an attribute
// (OpenID Connect Core, section 5.4).
var scopeClaims = map[string]map[string]func(directoryapi.Account) any{
	"profile": {
		"name": sources["fullName"], "given_name": sources["givenName"], "middle_name": sources["middleName"],
		"family_name": sources["surname"], "preferred_username": sources["username"], "updated_at": sources["modifiedAt"],
		"locale": sources["locale"],
	},
	"email": {
		"email": sources["email"],
		"email_verified": func(a directoryapi.Account) any {
			return a.EmailVerificationStatus == directoryapi.Verified && !a.EmailAssumed
		},
	},
}

// accountClaims adds the claims of an account that scopes, the parameter claims and the mappings of the provider give to
// a token or to UserInfo. A claim without a value is left out.
func (i issuer) accountClaims(to map[string]any, a directoryapi.Account, scopes, requested []string, place string) {
	add := func(name string, value any) {
		if value != nil && value != "" {
			to[name] = value
		}
	}
	for scope, claims := range scopeClaims {
		given := place == inUserInfo && slices.Contains(scopes, scope)
		for name, value := range claims {
			if given || slices.Contains(requested, name) {
				add(name, value(a))
			}
		}
	}
	for _, m := range i.provider.Settings.Claims {
		given := len(m.Scopes) == 0 || slices.ContainsFunc(m.Scopes, func(name string) bool {
			return slices.Contains(scopes, name)
		})
		if given && slices.Contains(m.In, place) || slices.Contains(requested, m.Claim) {
			add(m.Claim, sources[m.Source](a))
		}
	}
}

// joinScopes writes scopes as a token has them.
func joinScopes(scopes []string) string { return strings.Join(scopes, " ") }
