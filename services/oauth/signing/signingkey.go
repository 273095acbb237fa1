// Package signing has the key pairs that sign the tokens of a tenant: their rotation, the key set, signatures and their
// verification (docs/interface/openid.md#keys). It is a part of the OAuth service; services/oauth/openid signs by it.
package signing

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/cache"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/list"
	"github.com/doorward/doorward/pkg/purge"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/oauth/store"
)

const (
	// KeySetMaxAge is how long caches may keep a key set (jwks). A key is published for as long before it signs.
	KeySetMaxAge = 5 * time.Minute
	// goodUntilStep is how far ahead of the tokens of a key its GoodUntil is written, so that it is written
	// once in that time and not for each token.
	goodUntilStep = time.Hour
	// rotationInterval is the time between two looks for keys that are due for their successor.
	rotationInterval = time.Minute
	rotationBatch    = 100
)

// firstAlgorithms are those that each tenant has a key of from its beginning.
var firstAlgorithms = []string{secure.RS256, secure.ES256}

// Signer signs and verifies tokens.
type Signer struct {
	Config
	privateKeys *cache.Cache[keyRef, secure.SigningKey]
	firstKeys   singleflight.Group
}

// Config is what a Signer needs.
type Config struct {
	Store     *store.Store
	Directory directoryapi.API
	Ring      *secure.Keyring
	Now       func() time.Time
}

// New returns a Signer.
func New(cfg Config) *Signer {
	return &Signer{Config: cfg, privateKeys: cache.New(cache.Config[keyRef, secure.SigningKey]{
		Name: "oauth.privateKeys", Size: 4096, MaxAge: time.Hour, Now: cfg.Now,
	})}
}

type keyRef struct {
	tenant id.ID
	id     string
}

func keyPurpose(keyID string) string { return "oauth.signingKey/" + keyID }

// Sealed lists the columns that are encrypted under the master key (pkg/reseal/reseal.go).
var Sealed = []secure.SealedColumn[string]{{Table: "signing_keys", Key: "id", Column: "private_sealed",
	Purpose: keyPurpose}}

// newKey makes a key pair. The first one of an algorithm is ACTIVE at once.
func (s *Signer) newKey(tenant id.ID, algorithm, status string) (store.SigningKey, error) {
	now := s.Now()
	k := store.SigningKey{TenantID: tenant, ID: id.New(now).String(), Algorithm: algorithm, Status: status,
		CreatedAt: now, ModifiedAt: now,
		GoodUntil: now}
	pair, err := secure.NewSigningKey(k.ID, algorithm)
	if err != nil {
		return k, err
	}
	private, err := pair.Encode()
	if err == nil {
		k.PrivateSealed = s.Ring.Seal(private, keyPurpose(k.ID))
		k.JWK, err = pair.JWK()
	}
	return k, err
}

// activeKey returns the key of a tenant that signs with an algorithm, and makes it where it is the first.
func (s *Signer) activeKey(ctx context.Context, tenant id.ID, algorithm string) (store.SigningKey, error) {
	isWanted := func(k store.SigningKey) bool { return k.Algorithm == algorithm && k.Status == store.KeyActive }
	keys, err := s.Store.CachedSigningKeys(ctx, tenant)
	if err != nil {
		return store.SigningKey{}, err
	}
	if at := slices.IndexFunc(keys, isWanted); at >= 0 {
		return keys[at], nil
	}
	// Concurrent first uses share one key pair in this process; of several processes the database accepts one.
	_, err, _ = s.firstKeys.Do(tenant.String()+algorithm, func() (any, error) {
		rotation, err := s.rotationPeriod(ctx, tenant)
		if err != nil {
			return nil, err
		}
		k, err := s.newKey(tenant, algorithm, store.KeyActive)
		if err != nil {
			return nil, err
		}
		k.ActiveAt, k.RotateAt = &k.CreatedAt, rotation.after(k.CreatedAt)
		return nil, s.Store.Tx(context.WithoutCancel(ctx), func(tx *store.Tx) error { return tx.InsertSigningKey(ctx, k) })
	})
	if err != nil && !errors.Is(err, apierr.Exists) {
		return store.SigningKey{}, err
	}
	if keys, err = s.Store.SigningKeys(ctx, tenant); err != nil {
		return store.SigningKey{}, err
	}
	if at := slices.IndexFunc(keys, isWanted); at >= 0 {
		return keys[at], nil
	}
	return store.SigningKey{}, apierr.Unavailable.Because("the signing keys change at this moment; repeat the request")
}

// Sign signs the claims of a token that expires at expires with the tenant's ACTIVE key of an algorithm. The
// key is published for as long. The header gets the given members, such as typ.
func (s *Signer) Sign(ctx context.Context, tenant id.ID, algorithm string, header map[string]any, claims secure.Claims,
	expires time.Time) (secure.Secret, error) {
	for {
		k, err := s.activeKey(ctx, tenant, algorithm)
		if err != nil {
			return "", err
		}
		if expires.After(k.GoodUntil) {
			err := s.Store.Tx(ctx, func(tx *store.Tx) error {
				return tx.ExtendSigningKey(ctx, tenant, k.ID,
					expires.Add(goodUntilStep))
			})
			if errors.Is(err, apierr.NotFound) {
				continue // it was retired since it was read
			}
			if err != nil {
				return "", err
			}
		}
		pair, err := s.privateKeys.Get(ctx, keyRef{tenant, k.ID}, func(context.Context) (secure.SigningKey, error) {
			private, err := s.Ring.Open(k.PrivateSealed, keyPurpose(k.ID))
			if err != nil {
				return secure.SigningKey{}, err
			}
			return secure.ParseSigningKey(k.ID, k.Algorithm, private)
		})
		if err != nil {
			return "", err
		}
		return pair.Sign(header, claims)
	}
}

// Verify verifies the signature of a JWT of the tenant with the published key that its header names, and the
// algorithm of that key, and returns the header and the claims. It returns secure.ErrToken. Times are not
// validated.
func (s *Signer) Verify(ctx context.Context, tenant id.ID, text secure.Secret) (header map[string]any,
	claims secure.Claims, err error) {
	return s.VerifyBy(ctx, tenant, text, s.isPublished)
}

// VerifyBy is Verify with the keys that are accepted.
func (s *Signer) VerifyBy(ctx context.Context, tenant id.ID, text secure.Secret,
	accepts func(store.SigningKey) bool) (header map[string]any, claims secure.Claims, err error) {
	if header, err = secure.UnverifiedHeader(text); err != nil {
		return nil, nil, err
	}
	keys, err := s.Store.CachedSigningKeys(ctx, tenant)
	if err != nil {
		return nil, nil, err
	}
	at := slices.IndexFunc(keys, func(k store.SigningKey) bool { return header["kid"] == k.ID })
	if at < 0 || !accepts(keys[at]) {
		return nil, nil, secure.ErrToken
	}
	public, err := secure.ParseVerificationKey(keys[at].JWK)
	if err != nil {
		return nil, nil, err
	}
	claims, err = public.Verify(text, keys[at].Algorithm)
	return header, claims, err
}

// isPublished reports whether a key stands in the key set.
func (s *Signer) isPublished(k store.SigningKey) bool {
	return k.Status != store.KeyRetired || s.Now().Before(k.GoodUntil)
}

// KeySet is a set of public keys (RFC 7517, section 5).
type KeySet struct {
	Keys []json.RawMessage `json:"keys"`
}

// KeySet returns the public keys of a tenant. It reads them from the database: no process signs with a key that
// another one does not publish.
func (s *Signer) KeySet(ctx context.Context, tenant id.ID) (KeySet, error) {
	set := KeySet{Keys: []json.RawMessage{}}
	if err := s.ensureKeys(ctx, tenant); err != nil {
		return set, err
	}
	keys, err := s.Store.SigningKeys(ctx, tenant)
	for _, k := range keys {
		if s.isPublished(k) {
			set.Keys = append(set.Keys, k.JWK)
		}
	}
	return set, err
}

func (s *Signer) ensureKeys(ctx context.Context, tenant id.ID) error {
	for _, algorithm := range firstAlgorithms {
		if _, err := s.activeKey(ctx, tenant, algorithm); err != nil {
			return err
		}
	}
	return nil
}

// ListSigningKeys returns a page of the signing keys of a tenant, or apierr.NotFound for another tenant than
// that of the caller.
func (s *Signer) ListSigningKeys(ctx context.Context, tenant id.Ref, query list.Query) (list.Page[store.SigningKey],
	error) {
	owner, err := s.tenant(ctx, tenant)
	if err == nil {
		err = s.ensureKeys(ctx, owner.ID)
	}
	if err != nil {
		return list.Page[store.SigningKey]{}, err
	}
	return s.Store.ListSigningKeys(ctx, owner.ID, query.WithParentTimes(owner.CreatedAt, owner.ModifiedAt))
}

// SigningKey returns a signing key, or apierr.NotFound.
func (s *Signer) SigningKey(ctx context.Context, key id.Ref) (store.SigningKey, error) {
	keys, err := s.Store.SigningKeys(ctx, key.Tenant)
	if err != nil {
		return store.SigningKey{}, err
	}
	return findKey(keys, key.ID)
}

func findKey(keys []store.SigningKey, key id.ID) (store.SigningKey, error) {
	at := slices.IndexFunc(keys, func(k store.SigningKey) bool { return k.ID == key.String() })
	if at < 0 {
		return store.SigningKey{}, apierr.NotFound
	}
	return keys[at], nil
}

// NewSigningKey is the body that creates a signing key.
type NewSigningKey struct {
	Algorithm field.Text `json:"algorithm"`
	Status    field.Text `json:"status"`
}

// CreateSigningKey makes a key that is published and does not sign yet. A second one of the algorithm is
// apierr.Exists.
func (s *Signer) CreateSigningKey(ctx context.Context, tenant id.Ref, in NewSigningKey) (store.SigningKey, error) {
	owner, err := s.tenant(ctx, tenant)
	if err != nil {
		return store.SigningKey{}, err
	}
	_, err = field.Required(in.Algorithm, "algorithm", 255)
	algorithm, wrong := field.Enum(in.Algorithm, "algorithm", "", secure.SigningAlgorithms...)
	_, status := field.Enum(in.Status, "status", store.KeyNext, store.KeyNext)
	if err := field.First(err, wrong, status); err != nil {
		return store.SigningKey{}, err
	}
	if _, err := s.activeKey(ctx, owner.ID, algorithm); err != nil {
		return store.SigningKey{}, err
	}
	k, err := s.newKey(owner.ID, algorithm, store.KeyNext)
	if err != nil {
		return k, err
	}
	err = s.Store.Tx(ctx, func(tx *store.Tx) error { return tx.InsertSigningKey(ctx, k) })
	if errors.Is(err, apierr.Exists) {
		return k, apierr.Exists.Because("the tenant has a key of %s that is NEXT: activate or retire it first", algorithm)
	}
	return k, err
}

// KeyChange is the body that changes the status of a signing key.
type KeyChange struct {
	Status field.Text `json:"status"`
}

// UpdateSigningKey makes a key ACTIVE, which retires the one before it, or RETIRED. A key that caches of the key
// set may not have yet is apierr.Conflict, with the time from which it may be ACTIVE. force, for a key that was
// stolen, does not wait, and takes the retired key out of the key set, which ends its tokens.
func (s *Signer) UpdateSigningKey(ctx context.Context, key id.Ref, in KeyChange,
	force bool) (k store.SigningKey, err error) {
	rotation, err := s.rotationPeriod(ctx, key.Tenant)
	if err != nil {
		return k, err
	}
	err = s.Store.Tx(ctx, func(tx *store.Tx) error {
		keys, err := tx.LockSigningKeys(ctx, key.Tenant)
		if err != nil {
			return err
		}
		if k, err = findKey(keys, key.ID); err != nil {
			return err
		}
		status, err := field.Enum(in.Status, "status", k.Status, store.KeyNext, store.KeyActive, store.KeyRetired)
		switch {
		case err != nil:
			return err
		case status == store.KeyRetired && k.Status != store.KeyActive:
			return s.retire(ctx, tx, &k, force)
		case status == k.Status:
			return nil
		case status == store.KeyActive && k.Status == store.KeyNext:
			return s.activate(ctx, tx, keys, &k, rotation, force)
		}
		return apierr.Conflict.Because("a key that is %s cannot become %s: it is NEXT, then ACTIVE, then RETIRED by its successor", k.Status,
			status)
	})
	return k, err
}

// activate makes a NEXT key ACTIVE, and retires the one before it.
func (s *Signer) activate(ctx context.Context, tx *store.Tx, keys []store.SigningKey, k *store.SigningKey,
	rotation period, force bool) error {
	now := s.Now()
	if from := k.CreatedAt.Add(KeySetMaxAge); now.Before(from) && !force {
		return apierr.Conflict.Because("caches may not have the key yet: it can become ACTIVE from %s, or at once with force=true after a "+
			"compromise", from.UTC().Format(time.RFC3339))
	}
	for i := range keys {
		if former := &keys[i]; former.Algorithm == k.Algorithm && former.Status == store.KeyActive {
			if err := s.retire(ctx, tx, former, force); err != nil {
				return err
			}
		}
	}
	k.Status, k.ActiveAt, k.RotateAt, k.ModifiedAt = store.KeyActive, &now, rotation.after(now), now
	return tx.UpdateSigningKey(ctx, *k)
}

// retire makes a key RETIRED, and with force takes it out of the key set. A key that was not forced verifies ID tokens
// that have expired still (services/oauth/openid/hint.go).
func (s *Signer) retire(ctx context.Context, tx *store.Tx, k *store.SigningKey, force bool) error {
	now := s.Now()
	if k.RetiredAt == nil {
		k.Status, k.RotateAt, k.RetiredAt = store.KeyRetired, nil, &now
	}
	if force {
		k.GoodUntil = k.CreatedAt // no signature of it is accepted any more
	}
	k.ModifiedAt = now
	return tx.UpdateSigningKey(ctx, *k)
}

// KeyRotator is the worker that rotates signing keys until ctx ends.
func (s *Signer) KeyRotator(ctx context.Context) error {
	return purge.Periodically(rotationInterval, "rotation of signing keys failed, retrying", s.RotateKeys)(ctx)
}

// RotateKeys publishes a successor of each key that is due, and makes it ACTIVE when caches have it.
func (s *Signer) RotateKeys(ctx context.Context) error {
	due, err := s.Store.DueSigningKeys(ctx, s.Now(), rotationBatch)
	if err != nil {
		return err
	}
	var failed error
	for _, k := range due {
		if err := s.rotate(ctx, k); err != nil {
			failed = err
		}
	}
	return failed
}

func (s *Signer) rotate(ctx context.Context, due store.SigningKey) error {
	rotation, err := s.rotationPeriod(ctx, due.TenantID)
	if err != nil {
		return err
	}
	successor, err := s.newKey(due.TenantID, due.Algorithm, store.KeyNext)
	if err != nil {
		return err
	}
	return s.Store.Tx(ctx, func(tx *store.Tx) error {
		keys, err := tx.LockSigningKeys(ctx, due.TenantID)
		if err != nil {
			return err
		}
		k, next := (*store.SigningKey)(nil), (*store.SigningKey)(nil)
		for i := range keys {
			switch {
			case keys[i].ID == due.ID:
				k = &keys[i]
			case keys[i].Algorithm == due.Algorithm && keys[i].Status == store.KeyNext:
				next = &keys[i]
			}
		}
		if k == nil || k.RotateAt == nil || k.RotateAt.After(s.Now()) {
			return nil // another process was first
		}
		if next != nil && !s.Now().Before(next.CreatedAt.Add(KeySetMaxAge)) {
			return s.activate(ctx, tx, keys, next, rotation, false)
		}
		if next == nil {
			next = &successor
			if err := tx.InsertSigningKey(ctx, successor); err != nil {
				return err
			}
		}
		again := next.CreatedAt.Add(KeySetMaxAge)
		k.RotateAt = &again
		return tx.UpdateSigningKey(ctx, *k)
	})
}
