package oauth

import (
	"context"
	"errors"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/services/oauth/store"
)

// Revocation is the request to revoke a token (RFC 7009).
type Revocation struct {
	Tenant      id.ID
	Application id.ID
	Form        Form
}

// tokenTypeHints are the values of token_type_hint (RFC 7009, section 2.1).
var tokenTypeHints = map[string]store.TokenKind{"access_token": store.Access, "refresh_token": store.Refresh}

// Revoke is the revocation endpoint (RFC 7009). It deletes the refresh token that the token
// is, or was issued with, and all access tokens of that refresh token. An access token
// without a refresh token is deleted alone. A token that is unreadable, expired, unknown or
// of another application changes nothing and is no error
// (docs/interface/oauth.md#revocation). It returns apierr.NotFound for an unknown
// application, and apierr.TokenTypeUnknown for a JWT without the header stt where the form
// has no token_type_hint.
//
// One token alone is revoked by DeleteToken (token.go), all tokens of an account by
// passwordChanged (handlers.go), and the tokens of an API key by its deletion (apikey.go).
func (s *Service) Revoke(ctx context.Context, in Revocation) error {
	if _, err := s.peers.Application.Application(ctx, directoryapi.Ref{Tenant: in.Tenant, ID: in.Application}); err != nil {
		return err
	}
	text, err := in.Form.required("token")
	if err != nil {
		return err
	}
	hint := tokenTypeHints[in.Form["token_type_hint"].Reveal()]
	p, err := s.verifyToken(ctx, in.Tenant, text, func(header map[string]any) error {
		if header["stt"] == nil && hint == "" {
			return withOAuthError(apierr.TokenTypeUnknown.Because("the token has no header stt and the request no token_type_hint"),
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
	if !known || !s.cfg.Base.Is(p.issuer, "applications", in.Application) || !s.now().Before(p.expiresAt) {
		return nil
	}
	t, err := s.store.Token(ctx, p.kind, in.Tenant, p.id)
	if errors.Is(err, apierr.NotFound) || (err == nil && !s.matchesStoredToken(t, p)) {
		return nil
	}
	if err != nil {
		return err
	}
	return s.store.Tx(ctx, func(tx *store.Tx) error {
		if t.Kind == store.Refresh {
			return tx.DeleteTokenPair(ctx, t.TenantID, t.AccountID, t.ID)
		}
		if !t.RefreshID.IsZero() {
			return tx.DeleteTokenPair(ctx, t.TenantID, t.AccountID, t.RefreshID)
		}
		err := tx.DeleteToken(ctx, store.Access, t.TenantID, t.ID, s.now())
		if errors.Is(err, apierr.NotFound) {
			return nil // a concurrent request has revoked the token
		}
		return err
	})
}
