package oauth

import (
	"context"
	"errors"
	"net/http"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/services/oauth/store"
)

// refreshGrant gives a new access token for a refresh token (RFC 6749, section
// 6), which stays as it is: neither its text nor its expiry changes. Any number
// of refreshes may run at once; each gives an access token of its own, and a
// revocation ends them all.
func (s *Service) refreshGrant(ctx context.Context, in TokenRequest) (Issued, error) {
	text, err := in.Form.required("refresh_token")
	if err != nil {
		return Issued{}, err
	}
	refresh, err := s.check(ctx, store.Refresh, in.Tenant, in.Application, text)
	if err == nil {
		err = s.standing(ctx, in.Tenant, in.Application, holderOf(refresh))
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
	err = s.tx(ctx, func(tx *store.Tx) error {
		tx.InsertRefreshed(access)
		return nil
	})
	if errors.Is(err, apierr.NotFound) {
		err = badRefresh(apierr.TokenRevoked.Because("the token was deleted"))
	}
	return issued, err
}

// badRefresh refuses a refresh token. One that was revoked is a bad grant like
// the others here, and not an address that leads nowhere: 400 instead of 404
// (resolutions, section 12.4).
func badRefresh(err error) error {
	if errors.Is(err, apierr.TokenRevoked) {
		bad := *apierr.From(err)
		bad.Status = http.StatusBadRequest
		err = &bad
	}
	return refused(err, "invalid_grant")
}
