package connect

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
)

// Endpoints are the URLs of a provider.
type Endpoints struct {
	Authorization string `json:"authorizationEndpoint"`
	Token         string `json:"tokenEndpoint"`
	Resource      string `json:"resourceEndpoint"`  // user info endpoint, which returns the user object
	TokenInfo     string `json:"tokeninfoEndpoint"` // google: says to which client an access token was issued
	// facebook, github: the same; {clientId} stands for the client id
	TokenCheck    string `json:"tokenCheckEndpoint"`
	Introspection string `json:"introspectionEndpoint"` // linkedin, generic: the same (RFC 7662)
	JWKS          string `json:"jwksUri"`               // keys that sign id tokens
	Issuer        string `json:"issuer"`                // of id tokens
	RequestToken  string `json:"requestTokenEndpoint"`  // twitter: returns the request token of a new login
}

// publicEndpoints are the public URLs of the social providers.
var publicEndpoints = map[string]Endpoints{
	google: {
		Authorization: "https://accounts.google.com/o/oauth2/v2/auth", Token: "https://oauth2.googleapis.com/token",
		Resource: "https://www.googleapis.com/oauth2/v2/userinfo", TokenInfo: "https://oauth2.googleapis.com/tokeninfo",
		JWKS: "https://www.googleapis.com/oauth2/v3/certs", Issuer: "https://accounts.google.com",
	},
	facebook: {
		Authorization: "https://www.facebook.com/v25.0/dialog/oauth",
		Token:         "https://graph.facebook.com/v25.0/oauth/access_token",
		Resource:      "https://graph.facebook.com/v25.0/me",
		TokenCheck:    "https://graph.facebook.com/v25.0/debug_token",
	},
	github: {
		Authorization: "https://github.com/login/oauth/authorize", Token: "https://github.com/login/oauth/access_token",
		Resource: "https://api.github.com/user", TokenCheck: "https://api.github.com/applications/{clientId}/token",
	},
	linkedin: {
		Authorization: "https://www.linkedin.com/oauth/v2/authorization",
		Token:         "https://www.linkedin.com/oauth/v2/accessToken",
		Resource:      "https://api.linkedin.com/v2/userinfo",
		Introspection: "https://www.linkedin.com/oauth/v2/introspectToken",
	},
	twitter: {
		Authorization: "https://api.x.com/oauth/authenticate", Token: "https://api.x.com/oauth/access_token",
		Resource:     "https://api.x.com/1.1/account/verify_credentials.json",
		RequestToken: "https://api.x.com/oauth/request_token",
	},
}

// ParseEndpoints reads the URLs of social providers from a JSON object by provider id. A member
// that is missing keeps the public URL; an empty text keeps all of them.
func ParseEndpoints(text string) (map[string]Endpoints, error) {
	all := maps.Clone(publicEndpoints)
	if strings.TrimSpace(text) == "" {
		return all, nil
	}
	var given map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &given); err != nil || given == nil {
		return nil, errors.New(`the text must be a JSON object such as {"google":{"tokenEndpoint":"https://…"}}`)
	}
	for _, id := range slices.Sorted(maps.Keys(given)) {
		endpoints, known := all[id]
		if !known {
			return nil, fmt.Errorf("%q is no social provider; those are %s", id,
				strings.Join(slices.Sorted(maps.Keys(all)), ", "))
		}
		var named map[string]any
		_ = json.Unmarshal(given[id], &named) // the decoder below says what is wrong with it
		decoder := json.NewDecoder(bytes.NewReader(given[id]))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&endpoints); err != nil {
			return nil, fmt.Errorf("the endpoints of %s: %w", id, err)
		}
		for name, address := range endpoints.byName() {
			u, err := url.Parse(address)
			if address != "" && (err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil ||
				u.Fragment != "") {
				return nil, fmt.Errorf("the %s of %s must be an absolute https URL", name, id)
			}
		}
		all[id] = endpoints.completed(id, named)
	}
	return all, nil
}

// completed returns the endpoints of a deployment for a social provider. What a deployment does not
// name lies beside what it names, as at the provider itself: its secrets and tokens must not go to
// the public provider, which does not know them.
func (e Endpoints) completed(id string, named map[string]any) Endpoints {
	beside := func(to *string, member, neighbour, address, path string) {
		_, isNamed := named[member]
		if _, moved := named[neighbour]; moved && !isNamed {
			*to = address[:strings.LastIndex(address, "/")+1] + path
		}
	}
	switch id {
	case google:
		if _, isNamed := named["tokenCheckEndpoint"]; isNamed {
			e.TokenInfo = e.TokenCheck // another name
		}
	case facebook:
		beside(&e.TokenCheck, "tokenCheckEndpoint", "resourceEndpoint", e.Resource, "debug_token")
	case github:
		beside(&e.TokenCheck, "tokenCheckEndpoint", "resourceEndpoint", e.Resource,
			"applications/"+clientIDMark+"/token")
	case linkedin:
		beside(&e.Introspection, "introspectionEndpoint", "tokenEndpoint", e.Token, "introspectToken")
	case twitter:
		beside(&e.RequestToken, "requestTokenEndpoint", "tokenEndpoint", e.Token, "request_token")
	}
	return e
}

// byName returns the URLs by the names of their members.
func (e Endpoints) byName() map[string]string {
	return map[string]string{
		"authorizationEndpoint": e.Authorization, "tokenEndpoint": e.Token, "resourceEndpoint": e.Resource,
		"tokeninfoEndpoint": e.TokenInfo,
		"jwksUri":           e.JWKS, "issuer": e.Issuer, "requestTokenEndpoint": e.RequestToken,
		"tokenCheckEndpoint":    e.TokenCheck,
		"introspectionEndpoint": e.Introspection,
	}
}
