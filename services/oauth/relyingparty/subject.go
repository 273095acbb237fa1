package relyingparty

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/oauth/store"
)

// Subject returns the sub of an account for a client: its id, or a pairwise one (OpenID Connect Core, section 8.1)
// with the salt of the tenant. Of tokens of a client itself it is the client_id.
func Subject(client store.OpenIDClient, account id.ID, salt secure.Secret) string {
	if account.IsZero() {
		return client.ClientID
	}
	if client.Settings.SubjectType != SubjectPairwise {
		return account.String()
	}
	sector := client.ClientID
	switch {
	case client.Settings.SectorIdentifierURI != nil:
		sector = HostOf(*client.Settings.SectorIdentifierURI)
	case len(client.Settings.RedirectURIs) > 0:
		sector = HostOf(client.Settings.RedirectURIs[0])
	}
	mac := hmac.New(sha256.New, []byte(salt.Reveal()))
	_, _ = mac.Write([]byte(sector + "\x00" + account.String()))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// Salt returns the salt of the pairwise subjects of a tenant, and makes it where it is the first use. It stays the same
// permanently: a new master key changes no sub.
func (s *Clients) Salt(ctx context.Context, tenant id.ID) (secure.Secret, error) {
	return s.salts.Get(ctx, tenant, func(ctx context.Context) (secure.Secret, error) {
		salt, err := s.Store.OpenIDSalt(ctx, tenant)
		if !errors.Is(err, apierr.NotFound) {
			return salt, err
		}
		err = s.Store.Tx(ctx, func(tx *store.Tx) error {
			tx.InsertOpenIDSalt(tenant, secure.Token(SecretLength))
			return nil
		})
		if err != nil {
			return "", err
		}
		return s.Store.OpenIDSalt(ctx, tenant)
	})
}
