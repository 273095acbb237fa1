package oauth

import (
	"context"
	"errors"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/services/oauth/store"
)

// Revocation is the request to revoke a token.
type Revocation struct {
	Tenant      id.ID
	Application id.ID
	Form        Form
}

// hints are the values of token_type_hint (RFC 7009, section 2.1).
var hints = map[string]store.Kind{"access_token": store.Access, "refresh_token": store.Refresh}

// Revoke deletes a token together with its pair: the refresh token and every access
// token of it. A token that is unreadable, expired, unknown or of another
// application changes nothing and is no error
// (docs/interface/oauth.md#revocation). It returns apierr.NotFound for the
// application, and TokenTypeUnknown for a JWT without a type where the form has no
// hint either.
func (s *Service) Revoke(ctx context.Context, in Revocation) error {
	if _, err := s.peers.Application.Application(ctx, directoryapi.Ref{Tenant: in.Tenant, ID: in.Application}); err != nil {
		return err
	}
	text, err := in.Form.required("token")
	if err != nil {
		return err
	}
	hint := hints[in.Form["token_type_hint"].Reveal()]
	p, err := s.read(ctx, in.Tenant, text, func(header map[string]any) error {
		if header["stt"] == nil && hint == "" {
			return refused(apierr.TokenTypeUnknown.Because("the token has no header stt and the request no token_type_hint"),
				"unsupported_token_type")
		}
		return nil
	})
	if errors.Is(err, apierr.TokenSignature) {
		return nil
	}
	if err != nil {
		return err
	}
	if p.kind == "" {
		p.kind = hint
	}
	known := p.kind == store.Access || p.kind == store.Refresh
	if !known || p.issuer != s.cfg.Base.To("applications", in.Application) || !s.now().Before(p.expiresAt) {
		return nil
	}
	t, err := s.store.Token(ctx, p.kind, in.Tenant, p.id)
	if errors.Is(err, apierr.NotFound) || (err == nil && !s.issued(t, p)) {
		return nil
	}
	if err != nil {
		return err
	}
	return s.store.Tx(ctx, func(tx *store.Tx) error {
		if t.Kind == store.Refresh {
			return tx.DeletePair(ctx, t.TenantID, t.AccountID, t.ID)
		}
		if !t.RefreshID.IsZero() {
			return tx.DeletePair(ctx, t.TenantID, t.AccountID, t.RefreshID)
		}
		err := tx.DeleteToken(ctx, store.Access, t.TenantID, t.ID, s.now())
		if errors.Is(err, apierr.NotFound) {
			return nil // another request was first
		}
		return err
	})
}
