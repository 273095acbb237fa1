package openid

import (
	"maps"
	"slices"

	"github.com/doorward/doorward/services/oauth/claimsparameter"
	"github.com/doorward/doorward/services/oauth/relyingparty"
	"github.com/doorward/doorward/services/oauth/store"
)

// kept are the claims of a request that its code gives: those of scopes that the client may have, and where users are
// asked for their consent of scopes that were granted.
func (i issuer) kept(client store.OpenIDClient, text []byte, granted []string) (store.RequestedClaims, error) {
	in, err := claimsparameter.Parse(string(text))
	if err != nil {
		return store.RequestedClaims{}, err
	}
	may := func(scope string) bool {
		if client.Settings.Consent == relyingparty.ConsentRequired {
			return slices.Contains(granted, scope)
		}
		return i.mayHave(client, scope)
	}
	keep := func(claims map[string]*claimsparameter.Claim) (names []string) {
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
