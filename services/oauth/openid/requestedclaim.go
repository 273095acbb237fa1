package openid

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/doorward/doorward/services/oauth/relyingparty"
	"github.com/doorward/doorward/services/oauth/store"
)

// requestedClaims is the parameter claims (OpenID Connect Core, section 5.5). A claim without members is nil.
type requestedClaims struct {
	IDToken  map[string]*requestedClaim `json:"id_token,omitempty"`
	UserInfo map[string]*requestedClaim `json:"userinfo,omitempty"`
}

type requestedClaim struct {
	Essential bool  `json:"essential,omitempty"`
	Value     any   `json:"value,omitempty"`
	Values    []any `json:"values,omitempty"`
}

var errClaims = refuse("invalid_request",
	"claims must be a JSON object with the members id_token and userinfo: at most %d claims each, "+
		"each null or an object with essential, value, values", relyingparty.MaxList)

// parseClaims reads the parameter claims; an empty text asks for none. Members that are not known are ignored.
func parseClaims(text string) (in requestedClaims, err error) {
	if text == "" {
		return in, nil
	}
	if len(text) > maxClaims || text[0] != '{' {
		return in, errClaims
	}
	reader := json.NewDecoder(bytes.NewReader([]byte(text)))
	if reader.Decode(&in) != nil {
		return requestedClaims{}, errClaims
	}
	if _, err := reader.Token(); !errors.Is(err, io.EOF) {
		return requestedClaims{}, errClaims
	}
	for _, claims := range []map[string]*requestedClaim{in.IDToken, in.UserInfo} {
		if len(claims) > relyingparty.MaxList {
			return requestedClaims{}, errClaims
		}
		for name := range claims {
			if name == "" || len(name) > relyingparty.MaxText || strings.ContainsFunc(name, func(r rune) bool { return r < ' ' }) {
				return requestedClaims{}, errClaims
			}
		}
	}
	return in, nil
}

// names returns the claims of the parameter without their members, as an authorization has it from here to the code.
func (in requestedClaims) names() json.RawMessage {
	if len(in.IDToken) == 0 && len(in.UserInfo) == 0 {
		return nil
	}
	for _, claims := range []map[string]*requestedClaim{in.IDToken, in.UserInfo} {
		for name := range claims {
			claims[name] = nil
		}
	}
	text, _ := json.Marshal(in) // maps of nil pointers
	return text
}

// texts are the texts that the value of a claim is asked to be, in the order of preference.
func (c *requestedClaim) texts() []string {
	if c == nil {
		return nil
	}
	var texts []string
	for _, value := range append([]any{c.Value}, c.Values...) {
		text, ok := value.(string)
		if ok && text != "" && len(text) <= relyingparty.MaxText && !strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' }) {
			texts = append(texts, text)
		}
	}
	return texts
}

// kept are the claims of a request that its code gives: those of scopes that the client may have, and where users are
// asked for their consent of scopes that were granted.
func (i issuer) kept(client store.OpenIDClient, text []byte, granted []string) (store.RequestedClaims, error) {
	in, err := parseClaims(string(text))
	if err != nil {
		return store.RequestedClaims{}, err
	}
	may := func(scope string) bool {
		if client.Settings.Consent == relyingparty.ConsentRequired {
			return slices.Contains(granted, scope)
		}
		return i.mayHave(client, scope)
	}
	keep := func(claims map[string]*requestedClaim) (names []string) {
		for _, name := range slices.Sorted(maps.Keys(claims)) {
			if slices.ContainsFunc(i.scopesOfClaim(name), may) {
				names = append(names, name)
			}
		}
		return names
	}
	return store.RequestedClaims{IDToken: keep(in.IDToken), UserInfo: keep(in.UserInfo)}, nil
}

// scopesOfClaim returns the scopes by each of which a claim is given. A mapped claim without scopes goes with openid.
func (i issuer) scopesOfClaim(name string) (scopes []string) {
	for scope, claims := range scopeClaims {
		if claims[name] != "" {
			scopes = append(scopes, scope)
		}
	}
	for _, m := range i.provider.Settings.Claims {
		if m.Claim != name {
			continue
		}
		scopes = append(scopes, m.Scopes...)
		if len(m.Scopes) == 0 {
			scopes = append(scopes, scopeOpenID)
		}
	}
	return scopes
}
