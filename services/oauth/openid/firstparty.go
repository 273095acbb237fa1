package openid

import (
	"context"
	"errors"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/oauth/relyingparty"
	"github.com/doorward/doorward/services/oauth/store"
)

// isFirstParty reports whether an access token is good where the tokens of package oauth are, at authTokens and the
// Client API: it speaks of an account, to the provider itself, and its client is one that asks nobody for consent.
func (i issuer) isFirstParty(client store.OpenIDClient, t store.OpenIDToken) bool {
	return !t.AccountID.IsZero() && t.Token.Audience == i.url && t.Digest == nil &&
		client.Settings.Consent == relyingparty.ConsentNone
}

// FirstPartyToken returns an access token that is good at authTokens and the Client API, and its account. Any other is
// apierr.TokenSignature, also one that is bound to a key and comes without a proof of it.
func (s *Service) FirstPartyToken(ctx context.Context, application id.Ref, in Call) (store.OpenIDToken,
	directoryapi.Account, error) {
	in.Application = application.ID
	t, account, err := s.firstPartyToken(ctx, application.Tenant, in)
	if apierr.IsRefusal(err) {
		err = apierr.TokenSignature.Because("the token is no access token of a login at this application: %s",
			apierr.From(err).Reason)
	}
	return t, account, err
}

func (s *Service) firstPartyToken(ctx context.Context, tenant id.ID, in Call) (t store.OpenIDToken, account directoryapi.Account,
	err error) {
	i, err := s.issuer(ctx, in.Application)
	if err == nil && i.app.TenantID != tenant {
		err = apierr.NotFound
	}
	if err != nil {
		return t, account, err
	}
	t, client, account, err := s.accessToken(ctx, i, in.Bearer)
	if err == nil && !i.isFirstParty(client, t) {
		err = errAccessToken
	}
	if err == nil {
		err = s.checkPossession(ctx, i, in, t)
	}
	return t, account, err
}

// SignedFirstPartyToken returns an access token of FirstPartyToken by its id, with a JWT of it, or apierr.NotFound.
func (s *Service) SignedFirstPartyToken(ctx context.Context, token id.Ref) (t store.OpenIDToken, jwt secure.Secret,
	err error) {
	if t, err = s.Store.OpenIDToken(ctx, token); err != nil {
		return t, "", err
	}
	i, err := s.issuer(ctx, t.ApplicationID)
	if err != nil {
		return t, "", err
	}
	client, err := s.findClient(ctx, i, t.ClientID.String())
	if errors.Is(err, apierr.Unauthorized) || err == nil && (!i.isFirstParty(client, t) || !s.Now().Before(t.ExpiresAt)) {
		err = apierr.NotFound
	}
	if err != nil {
		return t, "", err
	}
	account, err := s.Directory.Account(ctx, id.Ref{Tenant: token.Tenant, ID: t.AccountID})
	if err != nil {
		return t, "", err
	}
	jwt, err = s.encodeAccessToken(ctx, i, client, &t, account)
	return t, jwt, err
}

// DeleteAccessToken deletes an access token, or returns apierr.NotFound.
func (s *Service) DeleteAccessToken(ctx context.Context, token id.Ref) error {
	if _, err := s.Store.OpenIDToken(ctx, token); err != nil {
		return err
	}
	return s.Store.Tx(ctx, func(tx *store.Tx) error {
		tx.DeleteOpenIDToken(token)
		return nil
	})
}
