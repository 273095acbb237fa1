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
	"github.com/doorward/doorward/services/oauth/signing"
	"github.com/doorward/doorward/services/oauth/store"
)

const (
	// secretLength is the length of the secret of a new API key, in characters of base62.
	// They carry 256 bits, as many as a signature with HS256.
	secretLength = 43

	maxAPIKeyID    = 64   // characters
	maxName        = 255  // characters (docs/interface/limits.md#field-limits)
	maxDescription = 1000 // characters
)

// apiKeyPurpose binds the encrypted secret of an API key to its id. The secret is not
// hashed but encrypted, because it also signs JWTs with HS256 (token.go).
func apiKeyPurpose(keyID string) string { return "oauth.apikey/" + keyID }

// Sealed lists the columns that are encrypted under the master key, for the rotation of
// that key (pkg/reseal/reseal.go).
var Sealed = append(signing.Sealed,
	secure.SealedColumn[string]{Table: "api_keys", Key: "id", Column: "secret_sealed", Purpose: apiKeyPurpose})

// isAPIKeyID reports whether text has the form of the id of an API key. Other text, such
// as a wrong kid of a token, is refused without a query.
func isAPIKeyID(text string) bool {
	const characters = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_"
	return text != "" && len(text) <= maxAPIKeyID && strings.Trim(text, characters) == ""
}

// APIKey returns an API key with its secret, or apierr.NotFound.
func (s *Service) APIKey(ctx context.Context, tenant id.ID, keyID string) (store.APIKey, error) {
	if !isAPIKeyID(keyID) {
		return store.APIKey{}, apierr.NotFound
	}
	return s.unsealSecret(s.store.APIKey(ctx, tenant, keyID))
}

// signingKey returns an API key of the tenant with its secret, as of at most 50 ms ago, or
// apierr.NotFound. It never returns a key of another tenant.
func (s *Service) signingKey(ctx context.Context, tenant id.ID, keyID string) (store.APIKey, error) {
	if !isAPIKeyID(keyID) {
		return store.APIKey{}, apierr.NotFound
	}
	k, err := s.store.FindAPIKey(ctx, keyID)
	if err == nil && k.TenantID != tenant {
		return store.APIKey{}, apierr.NotFound
	}
	return s.unsealSecret(k, err)
}

// ReadAPIKey returns an API key as APIKey does, for a client that reads the resource. It returns
// apierr.NotFound for a key whose account was deleted, whose event deletes the key a moment later.
func (s *Service) ReadAPIKey(ctx context.Context, tenant id.ID, keyID string) (store.APIKey, error) {
	k, err := s.APIKey(ctx, tenant, keyID)
	if err != nil {
		return k, err
	}
	_, err = s.peers.Directory.Account(ctx, directoryapi.Ref{Tenant: tenant, ID: k.AccountID})
	if errors.Is(err, apierr.NotFound) {
		err = apierr.NotFound // the key, not its account
	}
	return k, err
}

// unsealSecret decrypts the secret of an API key that was read, unless err is set.
func (s *Service) unsealSecret(k store.APIKey, err error) (store.APIKey, error) {
	if err == nil {
		k.Secret, err = s.ring.Open(k.SecretSealed, apiKeyPurpose(k.ID))
	}
	return k, err
}

// ListAPIKeys returns a page of an account's API keys with their secrets, or
// apierr.NotFound for the account.
func (s *Service) ListAPIKeys(ctx context.Context, tenant, account id.ID, query list.Query) (list.Page[store.APIKey],
	error) {
	owner, err := s.peers.Directory.Account(ctx, directoryapi.Ref{Tenant: tenant, ID: account})
	if err != nil {
		return list.Page[store.APIKey]{}, err
	}
	page, err := s.store.ListAPIKeys(ctx, tenant, account, query.WithParentTimes(owner.CreatedAt, owner.ModifiedAt))
	for i := range page.Items {
		if page.Items[i], err = s.unsealSecret(page.Items[i], err); err != nil {
			return page, err
		}
	}
	return page, err
}

// ListApplicationAPIKeys returns a page with the API key that the filter id of the query
// names, if an account store of the application has its account
// (docs/interface/authentication.md#api-keys). The key or the account may be disabled:
// clients check their status themselves. The page is empty for a disabled application,
// whose status clients do not see. It returns apierr.NotFound for the application, and
// apierr.ParameterEmpty without an id.
func (s *Service) ListApplicationAPIKeys(
	ctx context.Context, tenant, application id.ID, query list.Query,
) (list.Page[store.APIKey], error) {
	app, err := s.peers.Application.Application(ctx, directoryapi.Ref{Tenant: tenant, ID: application})
	if err != nil {
		return list.Page[store.APIKey]{}, err
	}
	page := list.NewPage[store.APIKey](query.WithParentTimes(app.CreatedAt, app.ModifiedAt))
	wanted := list.Filter{}
	if len(query.Filters) > 0 {
		wanted = query.Filters[0]
	}
	switch {
	case wanted.Match != list.Equal:
		return page, nil // a search with an asterisk, which no id has
	case wanted.Text == "":
		return page, apierr.ParameterEmpty.Because("the query parameter id is required: the id of an API key")
	}
	k, err := s.APIKey(ctx, tenant, wanted.Text)
	if errors.Is(err, apierr.NotFound) {
		return page, nil
	}
	if err != nil {
		return page, err
	}
	request := applicationapi.HasAccountRequest{Tenant: tenant, Application: application, Account: k.AccountID}
	found, err := s.peers.Application.HasAccount(ctx, request)
	if err != nil || !found.Reached || app.Status != directoryapi.Enabled {
		return page, err
	}
	page.Size = 1
	if query.Offset == 0 {
		page.Items = append(page.Items, k)
	}
	return page, nil
}

// NewAPIKey is the body that creates an API key.
type NewAPIKey struct {
	Name        field.Text `json:"name"`
	Description field.Text `json:"description"`
}

// APIKeyChange is the body that updates an API key.
type APIKeyChange struct {
	NewAPIKey
	Status field.Text `json:"status"`
}

// apply checks the members of a body and writes them into an API key.
func (in NewAPIKey) apply(k *store.APIKey) error {
	var errs field.Errors
	errs.Optional(&k.Name, in.Name, "name", maxName)
	errs.Optional(&k.Description, in.Description, "description", maxDescription)
	return errs.First()
}

// CreateAPIKey creates an API key of an account, or returns apierr.NotFound for the
// account. The authentication by an API key is in apikeyauth.go.
func (s *Service) CreateAPIKey(ctx context.Context, tenant, account id.ID, in NewAPIKey) (store.APIKey, error) {
	if _, err := s.peers.Directory.Account(ctx, directoryapi.Ref{Tenant: tenant, ID: account}); err != nil {
		return store.APIKey{}, err
	}
	k := newAPIKey(s.ring, s.now(), oauthapi.EnsureKey{
		Tenant: tenant, Account: account, ID: secure.KeyID(), Secret: secure.Token(secretLength),
	})
	if err := in.apply(&k); err != nil {
		return k, err
	}
	return k, s.store.Tx(ctx, func(tx *store.Tx) error { return tx.InsertAPIKey(ctx, k) })
}

func newAPIKey(ring *secure.Keyring, now time.Time, in oauthapi.EnsureKey) store.APIKey {
	return store.APIKey{
		Key: oauthapi.Key{
			TenantID: in.Tenant, ID: in.ID, AccountID: in.Account, Status: directoryapi.Enabled, CreatedAt: now, ModifiedAt: now,
		},
		SecretSealed: ring.Seal(in.Secret, apiKeyPurpose(in.ID)), Secret: in.Secret,
	}
}

// EnsureKey creates an API key with a given id and secret. It is idempotent: a key with
// the same id, secret and account is returned, another secret or account is
// apierr.Exists. With WasMade a missing key is not created but apierr.NotFound.
func (s *Service) EnsureKey(ctx context.Context, in oauthapi.EnsureKey) (oauthapi.Key, error) {
	if !isAPIKeyID(in.ID) {
		return oauthapi.Key{},
			apierr.Format.Because("the id of an API key has 1 to %d letters, digits, hyphens and underscores", maxAPIKeyID)
	}
	if directoryapi.IsAgentKey(in.ID) {
		return oauthapi.Key{}, apierr.Format.Because("the id of an API key cannot begin as that of a key of an agent")
	}
	if in.Secret == "" {
		return oauthapi.Key{}, apierr.Required.Because("the secret of an API key cannot be empty")
	}
	if !in.MustExist {
		k := newAPIKey(s.ring, s.now(), in)
		err := s.store.Tx(ctx, func(tx *store.Tx) error { return tx.InsertAPIKey(ctx, k) })
		if !errors.Is(err, apierr.Exists) {
			return k.Key, err
		}
	}
	own, err := s.APIKey(ctx, in.Tenant, in.ID)
	if in.MustExist && errors.Is(err, apierr.NotFound) {
		return oauthapi.Key{}, apierr.NotFound.Because("the API key %q was deleted", in.ID)
	}
	if err != nil && !errors.Is(err, apierr.NotFound) {
		return oauthapi.Key{}, err
	}
	if err != nil || own.AccountID != in.Account || !equalSecrets(own.Secret, in.Secret) {
		return oauthapi.Key{},
			apierr.Exists.Because("an API key with the id %q exists, with another secret or of another account", in.ID)
	}
	return own.Key, nil
}

// UpdateAPIKey changes the members that the body names. A key is revoked (disabled) by
// the status DISABLED, which can be undone: it authenticates no request, and the tokens
// that it signed are refused.
func (s *Service) UpdateAPIKey(ctx context.Context, tenant id.ID, keyID string, in APIKeyChange) (store.APIKey, error) {
	var k store.APIKey
	if !isAPIKeyID(keyID) {
		return k, apierr.NotFound
	}
	err := s.store.Tx(ctx, func(tx *store.Tx) (err error) {
		if k, err = tx.LockAPIKey(ctx, tenant, keyID); err != nil {
			return err
		}
		before := k
		k.Status, err = field.Enum(in.Status, "status", k.Status, directoryapi.Enabled, directoryapi.Disabled)
		if err := field.First(err, in.apply(&k)); err != nil {
			return err
		}
		k.ModifiedAt = s.now()
		return tx.UpdateAPIKey(ctx, before, k)
	})
	return s.unsealSecret(k, err)
}

// DeleteAPIKey revokes an API key for good, or returns apierr.NotFound. The tokens that
// the key signed are invalid from then on.
func (s *Service) DeleteAPIKey(ctx context.Context, tenant id.ID, keyID string) error {
	if !isAPIKeyID(keyID) {
		return apierr.NotFound
	}
	return s.store.Tx(ctx, func(tx *store.Tx) error { return tx.DeleteAPIKey(ctx, tenant, keyID) })
}
