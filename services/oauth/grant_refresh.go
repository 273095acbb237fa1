package oauth

import (
	"context"
	"errors"
	"net/http"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/services/oauth/store"
)

// refreshTokenGrant is the grant type refresh_token (RFC 6749, section 6): it issues a new
// access token for a refresh token, whose text and expiry stay the same. Any number of
// refreshes may run concurrently; each issues another access token, and a revocation of
// the refresh token revokes them all (revocation.go).
func (s *Service) refreshTokenGrant(ctx context.Context, in TokenRequest) (IssuedTokens, error) {
	text, err := in.Form.required("refresh_token")
	if err != nil {
		return IssuedTokens{}, err
	}
	refresh, err := s.checkToken(ctx, in.Tenant, in.Application, text, s.store.Token, store.Refresh)
	if err == nil {
		err = s.checkTokenAccess(ctx, refresh, s.checkAccess)
	}
	if err != nil {
		return IssuedTokens{}, refreshTokenError(err)
	}
	ttl, _, err := s.tokenLifetimes(ctx, in.Tenant, in.Application)
	if err != nil {
		return IssuedTokens{}, err
	}
	access := s.newToken(in, store.Access, subjectOf(refresh), ttl)
	access.RefreshID = refresh.ID
	issued, err := s.signTokens(ctx, in, access, store.Token{})
	if err != nil {
		return IssuedTokens{}, err
	}
	issued.Refresh = text
	err = s.refreshedTokenInserts.add(ctx, access)
	if errors.Is(err, apierr.NotFound) {
		err = refreshTokenError(s.errTokenDeleted())
	}
	return issued, err
}

// refreshTokenError makes an error of checkToken or checkTokenAccess one of the token
// endpoint: invalid_grant. TokenRevoked gets the status 400; in a validation it is 404
// (docs/interface/errors.md#oauth-failures).
func refreshTokenError(err error) error {
	if errors.Is(err, apierr.TokenRevoked) {
		bad := *apierr.From(err)
		bad.Status = http.StatusBadRequest
		err = &bad
	}
	return withOAuthError(err, "invalid_grant")
}
