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
	// keyTTL is how long an answer of the OAuth service is cached. It bounds how
	// long a key works that was disabled where no change was received.
	keyTTL = time.Second
	// keyTimeout bounds a call of the OAuth service.
	keyTimeout = 5 * time.Second
	// maxKeys bounds how many answers are cached, of each kind.
	maxKeys = 10_000
)

// keys caches what the OAuth service says of API keys; keychange.go invalidates
// it. The entries hold their expiry themselves: golang-lru's expirable cache
// wakes up a hundred times in each TTL, here every ten milliseconds, also in an
// idle gateway.
type keys struct {
	api     oauthapi.API
	limits  *Limits
	good    *lru.Cache[string, goodKey]
	bad     *lru.Cache[[sha256.Size]byte, time.Time] // when it was asked
	signers *lru.Cache[signer, struct{}]
	existed *lru.Cache[string, struct{}] // keys that large signed bodies came with
	calls   singleflight.Group

	changed    *lru.Cache[change, time.Time]
	generation atomic.Uint64 // number of changes
	outgoing   chan change
}

// signer is a key whose signature was right, and the address it came from.
type signer struct {
	key  string
	from subject
}

// goodKey is the last credential that was right for a key id.
type goodKey struct {
	hash   [sha256.Size]byte
	caller caller.Caller
	asked  time.Time
}

// fresh reports whether an answer may be used: it is recent, and from after the
// last change of the key, its account and its tenant.
func (k *keys) fresh(asked time.Time, owner caller.Caller) bool {
	return time.Since(asked) < keyTTL && k.current(asked, change{key: owner.Key}, change{id: owner.Account}, change{id: owner.Tenant})
}

func newKeys(api oauthapi.API, limits *Limits) *keys {
	k := &keys{api: api, limits: limits, outgoing: make(chan change, maxOutgoing)}
	k.good, _ = lru.New[string, goodKey](maxKeys) // fails only for a size below one
	k.bad, _ = lru.New[[sha256.Size]byte, time.Time](maxKeys)
	k.signers, _ = lru.New[signer, struct{}](maxKeys)
	k.existed, _ = lru.New[string, struct{}](maxKeys)
	k.changed, _ = lru.New[change, time.Time](maxKeys)
	return k
}

// authenticate returns whose key a credential is: apierr.Unauthorized for one
// that is not good, apierr.TooMany where the subject of wrong keys has had too
// many within a second.
func (k *keys) authenticate(ctx context.Context, cred credential, from subject) (caller.Caller, error) {
	if owner, ok, err := k.cached(cred); ok || err != nil {
		return owner, err
	}
	// Requests with the same credential share one call, but none that began
	// before a change.
	name := string(binary.BigEndian.AppendUint64(cred.hash[:], k.generation.Load()))
	answer, err, _ := k.calls.Do(name, func() (any, error) {
		if owner, ok, err := k.cached(cred); ok || err != nil {
			return owner, err // answered since
		}
		in := oauthapi.Authenticate{ID: string(cred.id), Secret: secure.Secret(cred.secret)}
		ask := func() (caller.Caller, error) { return k.ask(ctx, in, cred.hash) }
		if known, ok := k.good.Peek(in.ID); ok && known.hash == cred.hash {
			return ask() // right before: wrong keys of the same address do not delay it
		}
		return k.askUnauthenticated(ctx, from, ask)
	})
	if err != nil {
		return caller.Caller{}, err
	}
	return answer.(caller.Caller), nil
}

// cached returns the answer of a moment ago, if there is one.
func (k *keys) cached(cred credential) (owner caller.Caller, ok bool, err error) {
	known, ok := k.good.Get(utils.UnsafeString(cred.id)) // no cache keeps what it is asked for
	if ok && subtle.ConstantTimeCompare(known.hash[:], cred.hash[:]) == 1 && k.fresh(known.asked, known.caller) {
		return known.caller, true, nil
	}
	if asked, refused := k.bad.Get(cred.hash); refused && k.stillRefused(asked) {
		return caller.Caller{}, false, errKey
	}
	return caller.Caller{}, false, nil
}

// stillRefused reports whether a key that was refused at a time is refused without asking
// again. Nobody has said whose key it is: any change may have made it good. A refusal made
// within staleRead of a change is not cached longer than that.
func (k *keys) stillRefused(asked time.Time) bool {
	now := time.Now()
	if now.Sub(asked) >= keyTTL {
		return false
	}
	last, ok := k.changed.Peek(grant)
	current := last.Add(staleRead)
	return !ok || asked.After(last) && (now.Before(current) || !asked.Before(current))
}

// verify returns whose key signed a request. It is asked each time: a signed
// request is good once. Wrong signatures from an address do not delay a key that
// signed well there.
func (k *keys) verify(ctx context.Context, in oauthapi.VerifySignature, from subject) (caller.Caller, error) {
	ask := func() (caller.Caller, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), keyTimeout)
		defer cancel()
		key, err := k.api.VerifySignature(ctx, in)
		return callerOf(key), err
	}
	owner := signer{in.ID, from}
	if k.signers.Contains(owner) {
		return ask()
	}
	found, err := k.askUnauthenticated(ctx, from, ask)
	if err == nil {
		k.signers.Add(owner, struct{}{})
	}
	return found, err
}

// exists returns whose key an id names, without a proof of its secret.
func (k *keys) exists(ctx context.Context, name string) (caller.Caller, error) {
	ask := func() (caller.Caller, error) {
		ctx, cancel := context.WithTimeout(ctx, keyTimeout)
		defer cancel()
		key, err := k.api.ManagementKey(ctx, oauthapi.ManagementKey{ID: name})
		return callerOf(key), err
	}
	if k.existed.Contains(name) {
		return ask()
	}
	found, err := k.askUnauthenticated(ctx, subject{kind: unknownSignerLimit}, ask)
	if err == nil {
		k.existed.Add(name, struct{}{})
	}
	return found, err
}

// askUnauthenticated asks about a key that is not known to be good. A subject may have
// only so many of those in flight or refused within a second.
func (k *keys) askUnauthenticated(ctx context.Context, s subject, ask func() (caller.Caller, error)) (caller.Caller, error) {
	release, err := k.limits.hold(ctx, s)
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

// ask asks the OAuth service and caches what it says. A failure is not cached.
func (k *keys) ask(ctx context.Context, in oauthapi.Authenticate, hash [sha256.Size]byte) (caller.Caller, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), keyTimeout)
	defer cancel()
	asked := time.Now()
	key, err := k.api.Authenticate(ctx, in)
	if errors.Is(err, apierr.Unauthorized) {
		k.bad.Add(hash, asked)
		return caller.Caller{}, errKey
	}
	if err != nil {
		return caller.Caller{}, err
	}
	owner := callerOf(key)
	k.good.Add(in.ID, goodKey{hash, owner, asked})
	return owner, nil
}

func callerOf(key oauthapi.Key) caller.Caller {
	return caller.Caller{Tenant: key.TenantID, Key: key.ID, Account: key.AccountID}
}
