package gateway

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"net/netip"
	"net/url"
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
	// keyLife is how long an answer of the OAuth service is kept. It bounds how
	// long a key works that was disabled, and how long one does not that was
	// just made.
	keyTTL = time.Second
	// keyTime bounds the question.
	keyTimeout = 5 * time.Second
	// maxKeys bounds how many answers are kept, of each kind.
	maxKeys = 10_000
	// keyPattern is the path of the resource behind a key.
	keyPattern = "/v1/apiKeys/:id"
)

// keys remembers for a moment what the OAuth service says of API keys.
type keys struct {
	api       oauthapi.API
	limits    *Limits
	good      *lru.Cache[string, goodKey]
	bad       *lru.Cache[[sha256.Size]byte, badKey]
	signers   *lru.Cache[signer, struct{}]
	questions singleflight.Group
	forgets   atomic.Uint64
}

// signer is a key that has signed well, and where.
type signer struct {
	key  string
	from subject
}

// goodKey is the last credential that was right for a key id.
type goodKey struct {
	digest [sha256.Size]byte
	caller caller.Caller
	until  time.Time
}

// badKey is for how long a credential that was wrong is not asked for again. A
// key that was changed through this gateway since may be good now.
type badKey struct {
	until   time.Time
	forgets uint64
}

func newKeys(api oauthapi.API, limits *Limits) *keys {
	k := &keys{api: api, limits: limits}
	k.good, _ = lru.New[string, goodKey](maxKeys) // fails only for a size below one
	k.bad, _ = lru.New[[sha256.Size]byte, badKey](maxKeys)
	k.signers, _ = lru.New[signer, struct{}](maxKeys)
	return k
}

// authenticate says whose key it is. It returns apierr.Unauthorized for one
// that is not good, and apierr.TooMany for an address that has sent too many
// of those within a second.
func (k *keys) authenticate(ctx context.Context, cred credential, from netip.Addr) (caller.Caller, error) {
	if who, ok, err := k.cached(cred); ok || err != nil {
		return who, err
	}
	// Everybody who sends the same credential waits for one question.
	answer, err, _ := k.questions.Do(string(cred.digest[:]), func() (any, error) {
		if who, ok, err := k.cached(cred); ok || err != nil {
			return who, err // answered since
		}
		in := oauthapi.Authenticate{ID: string(cred.id), Secret: secure.Secret(cred.secret)}
		if known, ok := k.good.Peek(in.ID); ok && known.digest == cred.digest {
			// Right a moment ago: not held up by what others at the address try.
			return k.ask(ctx, in, cred.digest)
		}
		return k.askUnproven(ctx, addressSubject(wrongKeyLimit, from), func() (caller.Caller, error) { return k.ask(ctx, in, cred.digest) })
	})
	if err != nil {
		return caller.Caller{}, err
	}
	return answer.(caller.Caller), nil
}

// recall gives the answer of a moment ago, if there is one.
func (k *keys) cached(cred credential) (who caller.Caller, ok bool, err error) {
	now := time.Now()
	known, ok := k.good.Get(utils.UnsafeString(cred.id)) // which does not keep what it is asked for
	if ok && subtle.ConstantTimeCompare(known.digest[:], cred.digest[:]) == 1 && now.Before(known.until) {
		return known.caller, true, nil
	}
	if wrong, ok := k.bad.Get(cred.digest); ok && now.Before(wrong.until) && wrong.forgets == k.forgets.Load() {
		return caller.Caller{}, false, apierr.Unauthorized
	}
	return caller.Caller{}, false, nil
}

// verify says whose key signed a request. It is asked each time: a signed
// request is good once. Who has signed well at an address is not held up by
// what others there try.
func (k *keys) verify(ctx context.Context, in oauthapi.VerifySignature, from netip.Addr) (caller.Caller, error) {
	ask := func() (caller.Caller, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), keyTimeout)
		defer cancel()
		key, err := k.api.VerifySignature(ctx, in)
		return callerOf(key), err
	}
	who := signer{in.ID, addressSubject(signerLimit, from)}
	if k.signers.Contains(who) {
		return ask()
	}
	found, err := k.askUnproven(ctx, who.from, ask)
	if err == nil {
		k.signers.Add(who, struct{}{})
	}
	return found, err
}

// known checks that a key is good, without a proof of its secret.
func (k *keys) known(ctx context.Context, key string, from netip.Addr) error {
	_, err := k.askUnproven(ctx, addressSubject(wrongKeyLimit, from), func() (caller.Caller, error) {
		ctx, cancel := context.WithTimeout(ctx, keyTimeout)
		defer cancel()
		_, err := k.api.ManagementKey(ctx, oauthapi.ManagementKey{ID: key})
		return caller.Caller{}, err
	})
	return err
}

// guess asks about a key that is not known to be good. Of those an address may
// have only so many that are asked for or were wrong within a second.
func (k *keys) askUnproven(ctx context.Context, who subject, ask func() (caller.Caller, error)) (caller.Caller, error) {
	if limit := k.limits.enter(ctx, who); limit != nil {
		return caller.Caller{}, limit
	}
	found, err := ask()
	if errors.Is(err, apierr.Unauthorized) {
		time.AfterFunc(keyTTL, func() { k.limits.leave(who) })
	} else {
		k.limits.leave(who)
	}
	return found, err
}

// forget makes this gateway ask again for a key that was changed through it,
// whose path is given.
func (k *keys) forget(path []byte) {
	name, err := url.PathUnescape(string(path[bytes.LastIndexByte(path, '/')+1:]))
	if err != nil {
		return // no key has it
	}
	k.forgets.Add(1)
	if known, ok := k.good.Peek(name); ok {
		k.questions.Forget(string(known.digest[:]))
	}
	k.good.Remove(name)
}

// ask asks the OAuth service and remembers what it says. That it cannot be
// asked is not remembered.
func (k *keys) ask(ctx context.Context, in oauthapi.Authenticate, digest [sha256.Size]byte) (caller.Caller, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), keyTimeout)
	defer cancel()
	asked, forgets := time.Now(), k.forgets.Load()
	key, err := k.api.Authenticate(ctx, in)
	if errors.Is(err, apierr.Unauthorized) {
		k.bad.Add(digest, badKey{asked.Add(keyTTL), forgets})
		return caller.Caller{}, apierr.Unauthorized
	}
	if err != nil {
		return caller.Caller{}, err
	}
	who := callerOf(key)
	k.good.Add(in.ID, goodKey{digest, who, asked.Add(keyTTL)})
	if k.forgets.Load() != forgets {
		k.good.Remove(in.ID) // it may have changed since it was asked for
	}
	return who, nil
}

func callerOf(key oauthapi.Key) caller.Caller {
	return caller.Caller{Tenant: key.TenantID, Key: key.ID, Account: key.AccountID}
}
