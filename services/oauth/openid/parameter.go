package openid

import (
	"slices"
	"strings"

	"github.com/doorward/doorward/services/oauth/claimsparameter"
	"github.com/doorward/doorward/services/oauth/relyingparty"
	"github.com/doorward/doorward/services/oauth/store"
)

// The limits of the parameters of authorization and logout requests, in bytes. Nothing is cut: a longer one is
// invalid_request.
const (
	maxParameter = 4 << 10
	maxHint      = 8 << 10  // id_token_hint
	maxObject    = 32 << 10 // request
)

// parameters are those of an authorization request or a logout request, once each. One without a value is absent
// (RFC 6749, section 3.1).
type parameters map[string]string

// authorizationParameters are the parameters of an authorization request that have a meaning. Any other is ignored.
var authorizationParameters = []string{
	"client_id", "redirect_uri", "response_type", "response_mode", "scope", "state", "nonce", "code_challenge",
	"code_challenge_method", "prompt", "max_age", "login_hint", "id_token_hint", "acr_values", "claims", "ui_locales",
	"resource", "request", "request_uri", "dpop_jkt", "organization", "account_store",
}

// readParameters returns those of the named parameters that were sent once, and the names of those that were sent
// more than once.
func readParameters(sent map[string][]string, names []string) (p parameters, repeated []string) {
	p = parameters{}
	for _, name := range names {
		switch values := sent[name]; {
		case len(values) > 1:
			repeated = append(repeated, name)
		case len(values) == 1 && values[0] != "":
			p[name] = values[0]
		}
	}
	return p, repeated
}

// check refuses a parameter that is too long or has a control character.
func (p parameters) check() error {
	for name, value := range p {
		limit := maxParameter
		switch name {
		case "request":
			limit = maxObject
		case "claims":
			limit = claimsparameter.MaxLength
		case "id_token_hint":
			limit = maxHint
		}
		control := strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r == 0x7f })
		if len(value) > limit || control && name != "claims" {
			return refuse("invalid_request", "%s has more than %d bytes or a control character", name, limit)
		}
	}
	return nil
}

// words returns the words of a parameter that is a list; without the parameter nil.
func (p parameters) words(name string) []string {
	if p[name] == "" {
		return nil
	}
	return strings.Fields(p[name])
}

// redirectOf returns the redirect URI of a request. It may be left out where the client has one and openid is not
// asked for (OpenID Connect Core, section 3.1.2.1). Its error is for the user: nothing is sent to a URI that is not
// registered.
func redirectOf(client store.OpenIDClient, p parameters, repeated []string) (uri string, named bool, err error) {
	registered := client.Settings.RedirectURIs
	uri = p["redirect_uri"]
	switch {
	case slices.Contains(repeated, "redirect_uri"):
		return "", false, refuse("invalid_request", "redirect_uri is sent more than once")
	case uri != "" && relyingparty.MatchesRedirectURI(client.Settings, uri):
		return uri, true, nil
	case uri != "":
		return "", false, refuse("invalid_request", "redirect_uri is not registered: %q", uri)
	case len(registered) != 1 || slices.Contains(repeated, "scope") || slices.Contains(p.words("scope"), scopeOpenID):
		return "", false, refuse("invalid_request", "redirect_uri is missing")
	}
	return registered[0], false, nil
}
