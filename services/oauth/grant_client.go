package oauth

import (
	"context"
	"net/http"

	"github.com/doorward/doorward/pkg/apierr"
)

// errBadClient refuses client credentials without telling what is wrong with them.
var errBadClient = apierr.ClientCredentials.
	Because("the API key is unknown or disabled, its secret is wrong, or its account cannot log in to this application").
	With("error", "invalid_client")

// clientGrant returns an access token, and no refresh token, for an API key of an
// account (RFC 6749, section 4.4). The key is in the form, because the
// Authorization header has that of the caller.
func (s *Service) clientGrant(ctx context.Context, in TokenRequest) (Issued, error) {
	idField, secretField := "client_id", "client_secret"
	if in.Form["client_id"] == "" && in.Form["apiKeyId"] != "" {
		idField, secretField = "apiKeyId", "apiKeySecret"
	}
	key, err := in.Form.required(idField)
	if err != nil {
		return Issued{}, err
	}
	secret, err := in.Form.required(secretField)
	if err != nil {
		return Issued{}, err
	}
	k, err := s.signingKey(ctx, in.Tenant, key.Reveal())
	k, err = s.proven(secret, k, err)
	user := holder{account: k.AccountID}
	if err == nil {
		err = s.checkHolder(ctx, in.Tenant, in.Application, user, s.recentAccess)
	}
	if err != nil {
		if status := apierr.From(err).Status; status == http.StatusBadRequest || status == http.StatusUnauthorized {
			err = errBadClient
		}
		return Issued{}, err
	}
	return s.issue(ctx, in, user, false)
}
