package gateway

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
	"errors"
	"sync/atomic"
	"time"

	"github.com/gofiber/fiber/v2/utils"
	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/sync/singleflight"

	"github.com/doorward/doorward/pkg/api/oauthapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/secure"
)

const (
	// keyTTL is the TTL of the cache: how long an answer of the OAuth service is used. It bounds
	// how long a revoked API key is accepted where its invalidation was not received.
	keyTTL = time.Second
	// keyTimeout bounds a call to the OAuth service.
	keyTimeout = 5 * time.Second
	// maxKeys bounds the entries of each of the caches.
	maxKeys = 10_000
)

// apiKeyCache asks the OAuth service for API keys and caches its answers.
// apikeyinvalidation.go invalidates entries when a key is revoked, disabled or enabled. The
// entries hold the time of their answer: the expirable cache of golang-lru would wake up a hundred
// times in each TTL, every ten milliseconds, also in an idle gateway.
type apiKeyCache struct {
	api             oauthapi.API
	limiter         *Limiter
	accepted        *lru.Cache[string, acceptedKey]          // by the id of the API key
	rejected        *lru.Cache[[sha256.Size]byte, time.Time] // when the OAuth service was asked, by the hash of the credential
	verifiedClients *lru.Cache[signingClient, struct{}]
	existingKeys    *lru.Cache[string, struct{}] // ids of API keys that findByID has found
	calls           singleflight.Group

	invalidatedAt *lru.Cache[invalidation, time.Time] // the time of the last invalidation of each kind
	generation    atomic.Uint64                       // number of invalidations
	unpublished   chan invalidation                   // invalidations to publish in Redis
}

// signingClient is an API key, and the client address from which a signature of the key was valid.
type signingClient struct {
	key  string
	from subject
}

// acceptedKey is the last credential that the OAuth service accepted for the id of an API key.
type acceptedKey struct {
	hash   [sha256.Size]byte
	caller caller.Caller
	asked  time.Time
}

// isFresh reports whether a cached answer may be used: it is younger than keyTTL, and newer than
// the last invalidation of the key, its account and its tenant.
func (k *apiKeyCache) isFresh(asked time.Time, owner caller.Caller) bool {
	return time.Since(asked) < keyTTL && k.isCurrent(asked, invalidation{key: owner.Key}, invalidation{accountOrTenant: owner.Account},
		invalidation{accountOrTenant: owner.Tenant})
}

func newAPIKeyCache(api oauthapi.API, limits *Limiter) *apiKeyCache {
	k := &apiKeyCache{api: api, limiter: limits, unpublished: make(chan invalidation, maxUnpublished)}
	k.accepted, _ = lru.New[string, acceptedKey](maxKeys) // fails only for a size below one
	k.rejected, _ = lru.New[[sha256.Size]byte, time.Time](maxKeys)
	k.verifiedClients, _ = lru.New[signingClient, struct{}](maxKeys)
	k.existingKeys, _ = lru.New[string, struct{}](maxKeys)
	k.invalidatedAt, _ = lru.New[invalidation, time.Time](maxKeys)
	return k
}

// authenticate returns the caller of the API key whose credential is sent. It returns
// apierr.Unauthorized for a wrong or disabled key, and apierr.TooMany where the address (from) has
// sent too many wrong keys within a second.
func (k *apiKeyCache) authenticate(ctx context.Context, cred credential, from subject) (caller.Caller, error) {
	if owner, ok, err := k.cached(cred); ok || err != nil {
		return owner, err
	}
	// Concurrent requests with the same credential share one call (singleflight), but not a
	// call that began before an invalidation.
	name := string(binary.BigEndian.AppendUint64(cred.hash[:], k.generation.Load()))
	answer, err, _ := k.calls.Do(name, func() (any, error) {
		if owner, ok, err := k.cached(cred); ok || err != nil {
			return owner, err // another request has filled the cache meanwhile
		}
		in := oauthapi.Authenticate{ID: string(cred.id), Secret: secure.Secret(cred.secret)}
		ask := func() (caller.Caller, error) { return k.askOAuth(ctx, in, cred.hash) }
		if known, ok := k.accepted.Peek(in.ID); ok && known.hash == cred.hash {
			return ask() // a known credential: wrong keys of the same address do not delay it
		}
		return k.askLimited(ctx, from, ask)
	})
	if err != nil {
		return caller.Caller{}, err
	}
	return answer.(caller.Caller), nil
}

// cached returns the cached answer about a credential, if there is a current answer.
func (k *apiKeyCache) cached(cred credential) (owner caller.Caller, ok bool, err error) {
	known, ok := k.accepted.Get(utils.UnsafeString(cred.id)) // not copied: Get does not keep the key
	if ok && subtle.ConstantTimeCompare(known.hash[:], cred.hash[:]) == 1 && k.isFresh(known.asked, known.caller) {
		return known.caller, true, nil
	}
	if asked, refused := k.rejected.Get(cred.hash); refused && k.isStillRejected(asked) {
		return caller.Caller{}, false, errInvalidKey
	}
	return caller.Caller{}, false, nil
}

// isStillRejected reports whether a credential that was rejected at a time is rejected again
// without asking the OAuth service. The account of a rejected credential is not known, so that any
// change that enables keys invalidates the rejection. A rejection within staleRead after such a
// change is used until the end of staleRead only.
func (k *apiKeyCache) isStillRejected(asked time.Time) bool {
	now := time.Now()
	if now.Sub(asked) >= keyTTL {
		return false
	}
	last, ok := k.invalidatedAt.Peek(mayEnableKeys)
	current := last.Add(staleRead)
	return !ok || asked.After(last) && (now.Before(current) || !asked.Before(current))
}

// verifySignature returns the caller whose API key signed a request. The OAuth service is asked
// each time, because a signed request is accepted once (replay protection). Wrong signatures from
// an address do not delay a key whose signature from the same address was valid before.
func (k *apiKeyCache) verifySignature(ctx context.Context, in oauthapi.VerifySignature, from subject) (caller.Caller, error) {
	ask := func() (caller.Caller, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), keyTimeout)
		defer cancel()
		key, err := k.api.VerifySignature(ctx, in)
		return callerOfKey(key), err
	}
	client := signingClient{in.ID, from}
	if k.verifiedClients.Contains(client) {
		return ask()
	}
	found, err := k.askLimited(ctx, from, ask)
	if err == nil {
		k.verifiedClients.Add(client, struct{}{})
	}
	return found, err
}

// findByID returns the caller of the API key with an id. It verifies no secret.
func (k *apiKeyCache) findByID(ctx context.Context, name string, from subject) (caller.Caller, error) {
	ask := func() (caller.Caller, error) {
		ctx, cancel := context.WithTimeout(ctx, keyTimeout)
		defer cancel()
		key, err := k.api.ManagementKey(ctx, oauthapi.ManagementKey{ID: name})
		return callerOfKey(key), err
	}
	if k.existingKeys.Contains(name) {
		return ask()
	}
	found, err := k.askLimited(ctx, from, ask)
	if err == nil {
		k.existingKeys.Add(name, struct{}{})
	}
	return found, err
}

// askLimited calls ask for a credential that was not accepted before. It limits how many such
// calls of a subject are in flight or were rejected within keyTTL (brute force).
func (k *apiKeyCache) askLimited(ctx context.Context, s subject, ask func() (caller.Caller, error)) (caller.Caller, error) {
	release, err := k.limiter.acquireWithRelease(ctx, s)
	if err != nil {
		return caller.Caller{}, err
	}
	found, err := ask()
	if errors.Is(err, apierr.Unauthorized) {
		time.AfterFunc(keyTTL, release)
	} else {
		release()
	}
	return found, err
}

// askOAuth asks the OAuth service whether a credential is valid, and caches the answer. A failed
// call is not cached.
func (k *apiKeyCache) askOAuth(ctx context.Context, in oauthapi.Authenticate, hash [sha256.Size]byte) (caller.Caller, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), keyTimeout)
	defer cancel()
	asked := time.Now()
	key, err := k.api.Authenticate(ctx, in)
	if errors.Is(err, apierr.Unauthorized) {
		k.rejected.Add(hash, asked)
		return caller.Caller{}, errInvalidKey
	}
	if err != nil {
		return caller.Caller{}, err
	}
	owner := callerOfKey(key)
	k.accepted.Add(in.ID, acceptedKey{hash, owner, asked})
	return owner, nil
}

func callerOfKey(key oauthapi.Key) caller.Caller {
	return caller.Caller{Tenant: key.TenantID, Key: key.ID, Account: key.AccountID}
}
