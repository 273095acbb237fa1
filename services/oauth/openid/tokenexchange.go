package openid

import (
	"context"
	"errors"

	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/services/oauth/relyingparty"
	"github.com/doorward/doorward/services/oauth/store"
)

// The token types of token exchange (RFC 8693, section 3) that are offered.
const (
	kindAccessToken = "urn:ietf:params:oauth:token-type:access_token"
	kindJWT         = "urn:ietf:params:oauth:token-type:jwt"
)

// exchangeGrant is token exchange (RFC 8693): an access token of this provider for one with less, or with the client as
// the actor where it may act for others. The new token ends with the old one.
func (s *Service) exchangeGrant(ctx context.Context, r request) (issue, error) {
	policy := r.client.Settings.TokenExchange
	wanted := r.Form.text("requested_token_type")
	kind := r.Form.text("subject_token_type")
	switch {
	case policy == relyingparty.ExchangeNone:
		return issue{}, refuse("unauthorized_client", "the client may not exchange tokens")
	case r.Form["actor_token"] != "" || r.Form["actor_token_type"] != "":
		return issue{}, refuse("invalid_request", "actor_token is not supported: the client itself is the actor")
	case kind != kindAccessToken && kind != kindJWT:
		return issue{}, refuse("invalid_request", "subject_token_type must be %s", kindAccessToken)
	case wanted != "" && wanted != kindAccessToken && wanted != kindJWT:
		return issue{}, refuse("invalid_request", "requested_token_type must be %s", kindAccessToken)
	}
	t, _, _, err := s.accessToken(ctx, r.issuer, r.Form["subject_token"])
	switch {
	case errors.Is(err, errAccessToken):
		return issue{}, refuse("invalid_grant", "the subject_token is no access token of this provider that is valid")
	case err != nil:
		return issue{}, err
	case t.ClientID != r.client.ID && policy != relyingparty.ExchangeDelegate:
		return issue{}, refuse("invalid_grant", "the subject_token is of another client")
	case t.Token.JKT != "" && t.Token.JKT != r.jkt:
		return issue{}, refuse("invalid_dpop_proof", "the subject_token is bound to a key: send its proof")
	}
	out := issue{login: t.Token.Login, grant: t.GrantID, expires: t.ExpiresAt, audience: t.Token.Audience,
		kind: kindAccessToken}
	out.login.JKT = r.jkt
	if t.ClientID != r.client.ID {
		out.actor = r.client.ClientID
	}
	if out.scopes, err = narrow(t.Token.Scopes, r.Form.text("scope")); err != nil {
		return issue{}, err
	}
	if resource := r.Form.text("resource"); resource != "" && resource != t.Token.Audience {
		if t.Token.Audience != r.url {
			return issue{}, refuse("invalid_target", "the subject_token is for another resource")
		}
		if out.audience, err = r.target(resource); err != nil {
			return issue{}, err
		}
	}
	for _, name := range out.scopes {
		if !r.mayHave(r.client, name) {
			return issue{}, refuse("invalid_scope", "the client may not have the scope %s", name)
		}
	}
	out.save = func(ctx context.Context, tx *store.Tx) error {
		if err := tx.ShareOpenIDToken(ctx, id.Ref{Tenant: t.TenantID, ID: t.ID}); err != nil {
			return refuse("invalid_grant", "the subject_token was revoked")
		}
		return nil
	}
	return out, nil
}
