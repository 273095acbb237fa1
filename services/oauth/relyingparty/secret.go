package relyingparty

import (
	"context"
	"crypto/subtle"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/list"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/oauth/store"
)

// NewSecret is a secret that was just made.
type NewSecret struct {
	store.ClientSecret
	Secret secure.Secret
}

// CreateSecret makes a secret of a client, which is shown once. A third one is apierr.Exists.
func (s *Clients) CreateSecret(ctx context.Context, client id.Ref) (made NewSecret, err error) {
	if _, err := s.Client(ctx, client); err != nil {
		return made, err
	}
	now := s.Now()
	made.Secret = secure.Token(SecretLength)
	made.ClientSecret = store.ClientSecret{TenantID: client.Tenant, ClientID: client.ID, ID: id.New(now),
		Digest: secure.Digest(made.Secret), CreatedAt: now}
	return made, s.Store.Tx(ctx, func(tx *store.Tx) error {
		c, err := tx.LockOpenIDClient(ctx, client)
		if err != nil {
			return err
		}
		secrets, err := tx.LockClientSecrets(ctx, client)
		switch {
		case err != nil:
			return err
		case c.Settings.TokenEndpointAuthMethod == AuthNone || c.Settings.TokenEndpointAuthMethod == AuthKey:
			return apierr.Format.Because("a client with the tokenEndpointAuthMethod %s has no secret",
				c.Settings.TokenEndpointAuthMethod)
		case len(secrets) >= maxSecrets:
			return apierr.Exists.Because("the client has %d secrets: delete one first", len(secrets))
		}
		tx.InsertClientSecret(made.ClientSecret)
		return nil
	})
}

// Secrets returns the secrets of a client, without the secrets themselves.
func (s *Clients) Secrets(ctx context.Context, client id.Ref, query list.Query) (list.Page[store.ClientSecret], error) {
	c, err := s.Client(ctx, client)
	if err != nil {
		return list.Page[store.ClientSecret]{}, err
	}
	secrets, err := s.Store.ClientSecrets(ctx, client)
	return pageOf(query.WithParentTimes(c.CreatedAt, c.ModifiedAt), secrets), err
}

// pageOf is a page of a list that was read whole.
func pageOf[T any](query list.Query, all []T) list.Page[T] {
	page := list.NewPage[T](query)
	page.Size = len(all)
	page.Items = append(page.Items, all[min(query.Offset, len(all)):min(query.Offset+query.Limit, len(all))]...)
	return page
}

// DeleteSecret deletes a secret of a client, or returns apierr.NotFound.
func (s *Clients) DeleteSecret(ctx context.Context, client id.Ref, secret id.ID) error {
	return s.Store.Tx(ctx, func(tx *store.Tx) error {
		if _, err := tx.LockOpenIDClient(ctx, client); err != nil {
			return err
		}
		return tx.DeleteClientSecret(ctx, client, secret)
	})
}

// CheckSecret reports whether a client has a secret, and records its use.
func (s *Clients) CheckSecret(ctx context.Context, c store.OpenIDClient, given secure.Secret) (bool, error) {
	secrets, err := s.Store.CachedClientSecrets(ctx, id.Ref{Tenant: c.TenantID, ID: c.ID})
	if err != nil {
		return false, err
	}
	digest := secure.Digest(given)
	for _, known := range secrets {
		if subtle.ConstantTimeCompare(known.Digest, digest) != 1 {
			continue
		}
		if now := s.Now(); known.LastUsedAt == nil || now.Sub(*known.LastUsedAt) >= usedEvery {
			err = s.Store.Tx(ctx, func(tx *store.Tx) error {
				tx.UseClientSecret(known, now)
				return nil
			})
		}
		return true, err
	}
	return false, nil
}
