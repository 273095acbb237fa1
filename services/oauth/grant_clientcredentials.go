package oauth

import (
	"context"
	"net/http"

	"github.com/doorward/doorward/pkg/apierr"
)

// errBadClientCredentials refuses client credentials without telling which check has failed.
var errBadClientCredentials = apierr.ClientCredentials.
	Because("the API key is unknown or disabled, its secret is wrong, or its account cannot log in to this application").
	With("error", "invalid_client")

// clientCredentialsGrant is the grant type client_credentials (RFC 6749, section 4.4): it
// issues an access token, and no refresh token, to the account of an API key. That key is
// in the form, because the Authorization header has the key of the caller.
func (s *Service) clientCredentialsGrant(ctx context.Context, in TokenRequest) (IssuedTokens, error) {
	idField, secretField := "client_id", "client_secret"
	if in.Form["client_id"] == "" && in.Form["apiKeyId"] != "" {
		idField, secretField = "apiKeyId", "apiKeySecret"
	}
	keyID, err := in.Form.required(idField)
	if err != nil {
		return IssuedTokens{}, err
	}
	secret, err := in.Form.required(secretField)
	if err != nil {
		return IssuedTokens{}, err
	}
	k, err := s.signingKey(ctx, in.Tenant, keyID.Reveal())
	k, err = s.verifySecret(secret, k, err)
	user := subject{account: k.AccountID}
	if err == nil {
		_, err = s.checkAccess(ctx, user.accessRequest(in.Tenant, in.Application))
	}
	if err != nil {
		if status := apierr.From(err).Status; status == http.StatusBadRequest || status == http.StatusUnauthorized {
			err = errBadClientCredentials
		}
		return IssuedTokens{}, err
	}
	return s.issueTokens(ctx, in, user, false)
}
