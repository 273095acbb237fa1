package oauth

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/api/oauthapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/list"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/oauth/store"
)

const (
	// secretLength is the length of a secret in characters of base62, which
	// carry 256 bits: as many as the HS256 signatures made with it.
	secretLength = 43

	maxKeyID       = 64   // characters
	maxName        = 255  // characters (docs/interface/limits.md#field-limits)
	maxDescription = 1000 // characters
)

// keyPurpose is what the secret of a key is sealed for.
func keyPurpose(key string) string { return "oauth.apikey/" + key }

// Sealed are the columns of values that are sealed under the master key.
var Sealed = []secure.SealedColumn[string]{{Table: "api_keys", Key: "id", Column: "secret_sealed", Purpose: keyPurpose}}

// isKeyID reports whether text can be the id of a key. Other text, such as in the kid
// of a token, does not reach a query.
func isKeyID(text string) bool {
	return text != "" && len(text) <= maxKeyID && strings.Trim(text, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_") == ""
}

// Key returns a key with its secret, or apierr.NotFound.
func (s *Service) Key(ctx context.Context, tenant id.ID, key string) (store.Key, error) {
	if !isKeyID(key) {
		return store.Key{}, apierr.NotFound
	}
	return s.unsealed(s.store.Key(ctx, tenant, key))
}

// unsealed adds the secret of a key that was read.
func (s *Service) unsealed(k store.Key, err error) (store.Key, error) {
	if err == nil {
		k.Secret, err = s.ring.Open(k.SecretSealed, keyPurpose(k.ID))
	}
	return k, err
}

// ListKeys returns a page of an account's keys, or apierr.NotFound for the
// account.
func (s *Service) ListKeys(ctx context.Context, tenant, account id.ID, query list.Query) (list.Page[store.Key], error) {
	owner, err := s.peers.Directory.Account(ctx, directoryapi.Ref{Tenant: tenant, ID: account})
	if err != nil {
		return list.Page[store.Key]{}, err
	}
	page, err := s.store.ListKeys(ctx, tenant, account, query.Of(owner.CreatedAt, owner.ModifiedAt))
	for i := range page.Items {
		if page.Items[i], err = s.unsealed(page.Items[i], err); err != nil {
			return page, err
		}
	}
	return page, err
}

// ApplicationKeys returns a page with the key that the query's filter id names, if
// the application reaches its account (docs/interface/authentication.md#api-keys).
// Clients check the status of the key and of the account themselves; they do not
// see that of the application, so that a disabled one reaches no account. It
// returns apierr.NotFound for the application, and ParameterEmpty without an id.
func (s *Service) ApplicationKeys(ctx context.Context, tenant, application id.ID, query list.Query) (list.Page[store.Key], error) {
	app, err := s.peers.Application.Application(ctx, directoryapi.Ref{Tenant: tenant, ID: application})
	if err != nil {
		return list.Page[store.Key]{}, err
	}
	page := list.NewPage[store.Key](query.Of(app.CreatedAt, app.ModifiedAt))
	wanted := list.Filter{}
	if len(query.Filters) > 0 {
		wanted = query.Filters[0]
	}
	switch {
	case wanted.Match != list.Equal:
		return page, nil // an id holds no asterisk
	case wanted.Text == "":
		return page, apierr.ParameterEmpty.Because("the query parameter id is required: the id of an API key")
	}
	k, err := s.Key(ctx, tenant, wanted.Text)
	if errors.Is(err, apierr.NotFound) {
		return page, nil
	}
	if err != nil {
		return page, err
	}
	found, err := s.peers.Application.Reaches(ctx, applicationapi.Reaches{Tenant: tenant, Application: application, Account: k.AccountID})
	if err != nil || !found.Reached || app.Status != directoryapi.Enabled {
		return page, err
	}
	page.Size = 1
	if query.Offset == 0 {
		page.Items = append(page.Items, k)
	}
	return page, nil
}

// KeyText is the body that creates an API key.
type KeyText struct {
	Name        field.Text `json:"name"`
	Description field.Text `json:"description"`
}

// KeyChange is the body that updates an API key.
type KeyChange struct {
	KeyText
	Status field.Text `json:"status"`
}

// apply writes the members of a body into a key and checks them.
func (in KeyText) apply(k *store.Key) error {
	var refused field.Refusals
	refused.Optional(&k.Name, in.Name, "name", maxName)
	refused.Optional(&k.Description, in.Description, "description", maxDescription)
	return refused.First()
}

// CreateKey creates an API key of an account, which apikeyauth.go verifies, or returns
// apierr.NotFound for the account.
func (s *Service) CreateKey(ctx context.Context, tenant, account id.ID, in KeyText) (store.Key, error) {
	if _, err := s.peers.Directory.Account(ctx, directoryapi.Ref{Tenant: tenant, ID: account}); err != nil {
		return store.Key{}, err
	}
	k := newKey(s.ring, s.now(), oauthapi.EnsureKey{Tenant: tenant, Account: account, ID: secure.KeyID(), Secret: secure.Token(secretLength)})
	if err := in.apply(&k); err != nil {
		return k, err
	}
	return k, s.store.Tx(ctx, func(tx *store.Tx) error { return tx.InsertKey(ctx, k) })
}

func newKey(ring *secure.Keyring, now time.Time, in oauthapi.EnsureKey) store.Key {
	return store.Key{
		Key: oauthapi.Key{
			TenantID: in.Tenant, ID: in.ID, AccountID: in.Account, Status: directoryapi.Enabled, CreatedAt: now, ModifiedAt: now,
		},
		SecretSealed: ring.Seal(in.Secret, keyPurpose(in.ID)), Secret: in.Secret,
	}
}

// EnsureKey creates an API key with a given id and secret. It is idempotent: another
// secret or account for the same id is apierr.Exists. One that was made before and
// deleted since is apierr.NotFound.
func (s *Service) EnsureKey(ctx context.Context, in oauthapi.EnsureKey) (oauthapi.Key, error) {
	if !isKeyID(in.ID) {
		return oauthapi.Key{}, apierr.Format.Because("the id of an API key has 1 to %d letters, digits, hyphens and underscores", maxKeyID)
	}
	if directoryapi.IsAgentKey(in.ID) {
		return oauthapi.Key{}, apierr.Format.Because("the id of an API key cannot begin as that of a key of an agent")
	}
	if in.Secret == "" {
		return oauthapi.Key{}, apierr.Required.Because("the secret of an API key cannot be empty")
	}
	if !in.WasMade {
		k := newKey(s.ring, s.now(), in)
		err := s.store.Tx(ctx, func(tx *store.Tx) error { return tx.InsertKey(ctx, k) })
		if !errors.Is(err, apierr.Exists) {
			return k.Key, err
		}
	}
	own, err := s.Key(ctx, in.Tenant, in.ID)
	if in.WasMade && errors.Is(err, apierr.NotFound) {
		return oauthapi.Key{}, apierr.NotFound.Because("the API key %q was deleted", in.ID)
	}
	if err != nil && !errors.Is(err, apierr.NotFound) {
		return oauthapi.Key{}, err
	}
	if err != nil || own.AccountID != in.Account || !equal(own.Secret, in.Secret) {
		return oauthapi.Key{}, apierr.Exists.Because("an API key with the id %q exists, with another secret or of another account", in.ID)
	}
	return own.Key, nil
}

// UpdateKey changes what the body names.
func (s *Service) UpdateKey(ctx context.Context, tenant id.ID, key string, in KeyChange) (store.Key, error) {
	var k store.Key
	if !isKeyID(key) {
		return k, apierr.NotFound
	}
	err := s.store.Tx(ctx, func(tx *store.Tx) (err error) {
		if k, err = tx.LockKey(ctx, tenant, key); err != nil {
			return err
		}
		k.Status, err = field.Enum(in.Status, "status", k.Status, directoryapi.Enabled, directoryapi.Disabled)
		if err := field.First(err, in.apply(&k)); err != nil {
			return err
		}
		k.ModifiedAt = s.now()
		return tx.UpdateKey(ctx, k)
	})
	s.forgetKey(tenant, key)
	return s.unsealed(k, err)
}

// DeleteKey deletes a key, or returns apierr.NotFound. The tokens that it signed are
// invalid from then on.
func (s *Service) DeleteKey(ctx context.Context, tenant id.ID, key string) error {
	if !isKeyID(key) {
		return apierr.NotFound
	}
	err := s.store.Tx(ctx, func(tx *store.Tx) error { return tx.DeleteKey(ctx, tenant, key) })
	s.forgetKey(tenant, key)
	return err
}
