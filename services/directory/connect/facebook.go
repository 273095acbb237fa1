package connect

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"

	"github.com/doorward/doorward/pkg/api/directoryapi"
)

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
