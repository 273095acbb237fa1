package gateway

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"time"

	"github.com/gofiber/fiber/v2/utils"
	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/sync/singleflight"

	"github.com/doorward/doorward/pkg/api/oauthapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/cache"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
)

const (
	// rejectedTTL bounds how long a rejection is used, and is how long it counts against its address.
	rejectedTTL = time.Second
	// keyTimeout bounds a call to the OAuth service.
	keyTimeout = 5 * time.Second
	// maxKeys bounds the entries of each of the caches.
	maxKeys = 10_000
	// keyWeight is how much of the cache of answers an API key takes: the answer, the key, its account,
	// the tenant, the directory and the console, and one more for an organization or a group.
	keyWeight = 7
)

// apiKeyCache asks the OAuth service for API keys. An answer is kept while the OAuth, the application and
// the directory service report no change of what it depends on, and nothing of it was ended through this
// gateway (cache.Answers). So is a rejection, for rejectedTTL, while they report no change at all: the
// account of a rejected credential is not known.
type apiKeyCache struct {
	api      oauthapi.API
	limiter  *Limiter
	now      func() time.Time
	answers  *cache.Answers[string, acceptedKey] // by the id of the API key
	accepted *lru.Cache[string, acceptedKey]     // the last ones, which may have ended since
	// when the OAuth service was asked, by the hash of the credential
	rejected        *lru.Cache[[sha256.Size]byte, time.Time]
	verifiedClients *lru.Cache[signingClient, struct{}]
	tenants         *lru.Cache[string, id.ID] // of API keys that were found, by their ids
	calls           singleflight.Group
	endings         endings
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
}

func newAPIKeyCache(api oauthapi.API, feeds []cache.Source, limits *Limiter, now func() time.Time) *apiKeyCache {
	k := &apiKeyCache{api: api, limiter: limits, now: now, endings: newEndings(now)}
	k.answers = cache.NewAnswers[string, acceptedKey](cache.AnswersConfig{
		Name: "gateway.keys", Size: keyWeight * maxKeys, Now: now,
		Feeds: append([]cache.Source{api.AccessChanges}, feeds...),
	})
	k.accepted, _ = lru.New[string, acceptedKey](maxKeys) // fails only for a size below one
	k.rejected, _ = lru.New[[sha256.Size]byte, time.Time](maxKeys)
	k.verifiedClients, _ = lru.New[signingClient, struct{}](maxKeys)
	k.tenants, _ = lru.New[string, id.ID](maxKeys)
	return k
}

// authenticate returns the caller of the API key whose credential is sent. It returns
// apierr.Unauthorized for a wrong or disabled key, and apierr.TooMany where the address (from) has
// sent too many wrong keys within a second.
func (k *apiKeyCache) authenticate(ctx context.Context, cred credential,
	from subject) (owner caller.Caller, err error) {
	if owner, ok, err := k.cached(ctx, cred); ok || err != nil {
		return owner, err
	}
	// Concurrent requests with the same credential wait for one call (singleflight), whose answer they use
	// if it is kept. Otherwise it may be from before a change that they have to see.
	hasAsked := false
	_, _, _ = k.calls.Do(string(cred.hash[:]), func() (any, error) {
		hasAsked = true
		owner, err = k.ask(ctx, cred, from)
		return nil, nil
	})
	if hasAsked {
		return owner, err
	}
	if owner, ok, err := k.cached(ctx, cred); ok || err != nil {
		return owner, err
	}
	return k.ask(ctx, cred, from)
}

// cached returns the cached answer about a credential, if there is a current answer.
func (k *apiKeyCache) cached(ctx context.Context, cred credential) (owner caller.Caller, ok bool, err error) {
	known, ok := k.answers.Peek(ctx, utils.UnsafeString(cred.id)) // not copied: Peek does not keep the key
	if ok && known.is(cred) {
		return known.caller, true, nil
	}
	asked, rejected := k.rejected.Get(cred.hash)
	if rejected && k.now().Sub(asked) < rejectedTTL && k.answers.Unchanged(ctx, asked) {
		return caller.Caller{}, false, errInvalidKey
	}
	return caller.Caller{}, false, nil
}

func (a acceptedKey) is(cred credential) bool {
	return subtle.ConstantTimeCompare(a.hash[:], cred.hash[:]) == 1
}

// ask asks the OAuth service whether a credential is valid. Wrong keys of the same address do not delay one
// that was accepted before.
func (k *apiKeyCache) ask(ctx context.Context, cred credential, from subject) (caller.Caller, error) {
	in := oauthapi.Authenticate{ID: string(cred.id), Secret: secure.Secret(cred.secret)}
	ask := func() (caller.Caller, error) { return k.askOAuth(ctx, in, cred.hash) }
	if known, ok := k.accepted.Get(in.ID); ok && known.is(cred) {
		return ask()
	}
	return k.askLimited(ctx, from, ask)
}

// verifySignature returns the caller whose API key signed a request. The OAuth service is asked
// each time, because a signed request is accepted once (replay protection). Wrong signatures from
// an address do not delay a key whose signature from the same address was valid before.
func (k *apiKeyCache) verifySignature(ctx context.Context, in oauthapi.VerifySignature,
	from subject) (caller.Caller, error) {
	ask := func() (caller.Caller, error) {
		ctx, cancel := context.WithTimeout(k.withEndings(context.WithoutCancel(ctx), in.ID), keyTimeout)
		defer cancel()
		key, err := k.api.VerifySignature(ctx, in)
		return k.found(key, err)
	}
	client := signingClient{in.ID, from}
	if k.verifiedClients.Contains(client) {
		return ask()
	}
	found, err := k.askLimited(ctx, from, ask)
	if err != nil {
		return found, err
	}
	k.verifiedClients.Add(client, struct{}{})
	return found, nil
}

// findByID returns the caller of the API key with an id. It verifies no secret.
func (k *apiKeyCache) findByID(ctx context.Context, name string, from subject) (caller.Caller, error) {
	ask := func() (caller.Caller, error) {
		ctx, cancel := context.WithTimeout(k.withEndings(ctx, name), keyTimeout)
		defer cancel()
		key, err := k.api.ManagementKey(ctx, oauthapi.ManagementKey{ID: name})
		return k.found(key, err)
	}
	if k.tenants.Contains(name) {
		return ask()
	}
	return k.askLimited(ctx, from, ask)
}

// askLimited calls ask for a credential that was not accepted before. It limits how many such
// calls of a subject are in flight or were rejected within rejectedTTL (brute force).
func (k *apiKeyCache) askLimited(ctx context.Context, s subject,
	ask func() (caller.Caller, error)) (caller.Caller, error) {
	release, err := k.limiter.acquireWithRelease(ctx, s)
	if err != nil {
		return caller.Caller{}, err
	}
	found, err := ask()
	if errors.Is(err, apierr.Unauthorized) {
		time.AfterFunc(rejectedTTL, release)
	} else {
		release()
	}
	return found, err
}

// askOAuth asks the OAuth service whether a credential is valid, and caches the answer. A failed
// call is not cached.
func (k *apiKeyCache) askOAuth(ctx context.Context, in oauthapi.Authenticate,
	hash [sha256.Size]byte) (caller.Caller, error) {
	ctx, cancel := context.WithTimeout(k.withEndings(context.WithoutCancel(ctx), in.ID), keyTimeout)
	defer cancel()
	asked := k.now()
	known, err := k.answers.Ask(ctx, in.ID, func(ctx context.Context) (acceptedKey, []id.ID, error) {
		key, err := k.api.Authenticate(ctx, in)
		if len(key.DependsOn) > 0 {
			key.DependsOn = append(key.DependsOn, key.TenantID) // all of the tenant may have ended
		}
		owner, err := k.found(key, err)
		return acceptedKey{hash, owner}, key.DependsOn, err
	})
	if errors.Is(err, apierr.Unauthorized) {
		k.rejected.Add(hash, asked)
		return caller.Caller{}, errInvalidKey
	}
	if err != nil {
		return caller.Caller{}, err
	}
	k.accepted.Add(in.ID, known)
	return known.caller, nil
}

// found returns the caller of an API key that was found, and remembers its tenant.
func (k *apiKeyCache) found(key oauthapi.Key, err error) (caller.Caller, error) {
	if err != nil {
		return caller.Caller{}, err
	}
	k.tenants.Add(key.ID, key.TenantID)
	return caller.Caller{Tenant: key.TenantID, Key: key.ID, Account: key.AccountID}, nil
}

// withEndings returns the context of a call about an API key, with what was just ended in its tenant, or
// all if the tenant is not known.
func (k *apiKeyCache) withEndings(ctx context.Context, keyID string) context.Context {
	who := caller.From(ctx)
	if tenant, ok := k.tenants.Peek(keyID); ok {
		who.Ended = k.endings.of(tenant)
	} else if k.endings.any() {
		who.Ended = caller.IDs("").With(id.ID{})
	}
	return caller.Into(ctx, who)
}

// end records what a service's answer says that the request has ended.
func (k *apiKeyCache) end(header []byte) {
	for tenant, ended := range caller.ParseEnded(header) {
		k.endings.add(tenant, ended)
		for resource := range ended.All() {
			if resource.IsZero() {
				resource = tenant
			}
			k.answers.Invalidate(resource)
		}
	}
}
