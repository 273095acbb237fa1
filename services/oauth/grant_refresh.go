package oauth

import (
	"context"
	"errors"
	"net/http"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/services/oauth/store"
)

// refreshGrant returns a new access token for a refresh token (RFC 6749, section 6).
// Refresh token rotation (RFC 9700): none, and so no detection of token reuse. The text and
// the expiry of the token stay the same.
// Any number of refreshes may run concurrently; each returns another access token, and a
// revocation ends them all.
func (s *Service) refreshGrant(ctx context.Context, in TokenRequest) (Issued, error) {
	text, err := in.Form.required("refresh_token")
	if err != nil {
		return Issued{}, err
	}
	refresh, err := s.check(ctx, in.Tenant, in.Application, text, s.store.Token, store.Refresh)
	if err == nil {
		_, err = s.checkTokenAccess(ctx, refresh, true, s.recentAccess)
	}
	if err != nil {
		return Issued{}, badRefresh(err)
	}
	ttl, _, err := s.lifetimes(ctx, in.Tenant, in.Application)
	if err != nil {
		return Issued{}, err
	}
	access := s.newToken(in, store.Access, holderOf(refresh), ttl)
	access.RefreshID = refresh.ID
	issued, err := s.signPair(ctx, in, access, store.Token{})
	if err != nil {
		return Issued{}, err
	}
	issued.Refresh = text
	err = s.refreshed.add(ctx, access)
	if errors.Is(err, apierr.NotFound) {
		err = badRefresh(s.errTokenDeleted())
	}
	return issued, err
}

// badRefresh refuses a refresh token. Here TokenRevoked is 400 as the others, and
// not 404 as for an address (docs/interface/errors.md#oauth-failures).
func badRefresh(err error) error {
	if errors.Is(err, apierr.TokenRevoked) {
		bad := *apierr.From(err)
		bad.Status = http.StatusBadRequest
		err = &bad
	}
	return refused(err, "invalid_grant")
}
