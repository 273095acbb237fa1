package connect

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"

	"github.com/doorward/doorward/pkg/api/directoryapi"
)

// facebookFields are the members of the user object that are requested. By default, Facebook
// returns only id and name.
const facebookFields = "id,name,email,first_name,middle_name,last_name"

// facebook fetches the user of an access token from the Graph API.
func (s *providerLogin) facebook(ctx context.Context) (directoryapi.ProviderUser, error) {
	proof := hmac.New(sha256.New, []byte(s.provider.ClientSecret.Reveal()))
	proof.Write([]byte(s.tokens.AccessToken.Reveal()))
	// appsecret_proof makes Facebook refuse a token that was issued to another client.
	address := withQuery(s.provider.Resource, "fields", facebookFields, "appsecret_proof",
		hex.EncodeToString(proof.Sum(nil)))
	object, raw, err := s.get(ctx, address, bearer(s.tokens.AccessToken))
	if err != nil {
		return directoryapi.ProviderUser{}, err
	}
	u, err := s.profile(object, raw)
	u.EmailVerified = u.Email != "" // Facebook returns verified emails only
	splitName(&u, firstText(object, "name"))
	return u, err
}
