package gateway

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"net/netip"
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
	keyLife = time.Second
	// keyTime bounds the question.
	keyTime = 5 * time.Second
	// maxKeys bounds how many answers are kept, of each kind.
	maxKeys = 10_000
)

// keys remembers for a moment what the OAuth service says of API keys.
type keys struct {
	api     oauthapi.API
	limits  *Limits
	limit   int // of an address
	good    *lru.Cache[string, goodKey]
	bad     *lru.Cache[[sha256.Size]byte, time.Time]
	flights singleflight.Group
}

// goodKey is the last credential that was right for a key id.
type goodKey struct {
	digest [sha256.Size]byte
	caller caller.Caller
	until  time.Time
}

func newKeys(api oauthapi.API, limits *Limits, limit int) *keys {
	k := &keys{api: api, limits: limits, limit: limit}
	k.good, _ = lru.New[string, goodKey](maxKeys) // fails only for a size below one
	k.bad, _ = lru.New[[sha256.Size]byte, time.Time](maxKeys)
	return k
}

// authenticate says whose key it is. It returns apierr.Unauthorized for one
// that is not good, and apierr.TooMany for an address that has sent too many
// of those within a second.
func (k *keys) authenticate(ctx context.Context, cred credential, from netip.Addr) (caller.Caller, error) {
	if who, ok, err := k.recall(cred); ok || err != nil {
		return who, err
	}
	// Everybody who sends the same credential waits for one question.
	answer, err, _ := k.flights.Do(string(cred.digest[:]), func() (any, error) {
		if who, ok, err := k.recall(cred); ok || err != nil {
			return who, err // answered since
		}
		in := oauthapi.Authenticate{ID: string(cred.id), Secret: secure.Secret(cred.secret)}
		if known, ok := k.good.Peek(in.ID); ok && known.digest == cred.digest {
			// Right a moment ago: not held up by what others at the address try.
			return k.ask(ctx, in, cred.digest)
		}
		who := addressSubject(aGuesser, from)
		if !k.limits.enter(ctx, who, k.limit) {
			return caller.Caller{}, tooMany
		}
		result, err := k.ask(ctx, in, cred.digest)
		if errors.Is(err, apierr.Unauthorized) {
			time.AfterFunc(keyLife, func() { k.limits.leave(who) })
		} else {
			k.limits.leave(who)
		}
		return result, err
	})
	if err != nil {
		return caller.Caller{}, err
	}
	return answer.(caller.Caller), nil
}

// recall gives the answer of a moment ago, if there is one.
func (k *keys) recall(cred credential) (who caller.Caller, ok bool, err error) {
	now := time.Now()
	known, ok := k.good.Get(utils.UnsafeString(cred.id)) // which does not keep what it is asked for
	if ok && subtle.ConstantTimeCompare(known.digest[:], cred.digest[:]) == 1 && now.Before(known.until) {
		return known.caller, true, nil
	}
	if until, ok := k.bad.Get(cred.digest); ok && now.Before(until) {
		return caller.Caller{}, false, apierr.Unauthorized
	}
	return caller.Caller{}, false, nil
}

// ask asks the OAuth service and remembers what it says. That it cannot be
// asked is not remembered.
func (k *keys) ask(ctx context.Context, in oauthapi.Authenticate, digest [sha256.Size]byte) (caller.Caller, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), keyTime)
	defer cancel()
	asked := time.Now()
	key, err := k.api.Authenticate(ctx, in)
	if errors.Is(err, apierr.Unauthorized) {
		k.bad.Add(digest, asked.Add(keyLife))
		return caller.Caller{}, apierr.Unauthorized
	}
	if err != nil {
		return caller.Caller{}, err
	}
	who := caller.Caller{Tenant: key.TenantID, Key: key.ID, Account: key.AccountID}
	k.good.Add(in.ID, goodKey{digest, who, asked.Add(keyLife)})
	return who, nil
}
