package secure

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/argon2"
	"golang.org/x/text/unicode/norm"

	"github.com/doorward/doorward/pkg/apierr"
)

// Cost is the work of one password hash: argon2id (RFC 9106).
type Cost struct {
	Memory  uint32 // KiB
	Time    uint32 // passes
	Threads uint8
}

// DefaultCost is the least that OWASP advises: 19 MiB, two passes, one lane.
var DefaultCost = Cost{Memory: 19 * 1024, Time: 2, Threads: 1}

const (
	saltLength = 16
	hashLength = 32
)

// Passwords hashes and verifies passwords. Hashes run in a bounded number of
// places with a bounded queue; what does not fit is refused at once with 503
// and Retry-After, so that a flood of logins neither queues without end nor
// starves other requests.
type Passwords struct {
	cost    Cost
	places  chan struct{}
	waiting atomic.Int64
	queue   int64
	dummy   string
}

// NewPasswords makes a pool of workers places and a queue of queue waiters.
func NewPasswords(cost Cost, workers, queue int) *Passwords {
	p := &Passwords{cost: cost, places: make(chan struct{}, workers), queue: int64(queue)}
	p.dummy = encode(cost, make([]byte, saltLength), make([]byte, hashLength))
	return p
}

// Hash makes the stored form of a password, in the PHC string format.
func (p *Passwords) Hash(ctx context.Context, password Secret) (string, error) {
	release, err := p.enter(ctx)
	if err != nil {
		return "", err
	}
	defer release()
	salt := make([]byte, saltLength)
	_, _ = rand.Read(salt)
	return encode(p.cost, salt, derive(p.cost, password, salt, hashLength)), nil
}

// Verify compares a password with its stored form. An empty stored form costs
// the same work and never matches, so that time does not tell whether an
// account exists. stale asks the caller to hash the password anew, because
// the cost was changed.
func (p *Passwords) Verify(ctx context.Context, stored string, password Secret) (match, stale bool, err error) {
	release, err := p.enter(ctx)
	if err != nil {
		return false, false, err
	}
	defer release()
	absent := stored == ""
	if absent {
		stored = p.dummy
	}
	cost, salt, want, err := decode(stored)
	if err != nil {
		return false, false, err
	}
	got := derive(cost, password, salt, uint32(len(want)))
	match = subtle.ConstantTimeCompare(got, want) == 1 && !absent
	return match, match && cost != p.cost, nil
}

// enter waits for a place. The returned function gives it back.
func (p *Passwords) enter(ctx context.Context) (release func(), err error) {
	select {
	case p.places <- struct{}{}:
		return func() { <-p.places }, nil
	default:
	}
	if p.waiting.Add(1) > p.queue {
		p.waiting.Add(-1)
		return nil, apierr.Unavailable.Because("too many passwords are being checked at this moment; repeat the request later").After(time.Second)
	}
	defer p.waiting.Add(-1)
	select {
	case p.places <- struct{}{}:
		return func() { <-p.places }, nil
	case <-ctx.Done():
		return nil, apierr.Unavailable.Because("the request ended before its password could be checked").After(time.Second)
	}
}

// derive hashes the password in Unicode's normal form C, so that the same
// password typed on two keyboards is one password (RFC 8265, section 4.2).
func derive(cost Cost, password Secret, salt []byte, length uint32) []byte {
	return argon2.IDKey(norm.NFC.Bytes([]byte(password)), salt, cost.Time, cost.Memory, cost.Threads, length)
}

func encode(cost Cost, salt, hash []byte) string {
	b64 := base64.RawStdEncoding.EncodeToString
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, cost.Memory, cost.Time, cost.Threads, b64(salt), b64(hash))
}

func decode(stored string) (cost Cost, salt, hash []byte, err error) {
	parts := strings.Split(stored, "$")
	var version int
	if len(parts) != 6 || parts[1] != "argon2id" {
		return cost, nil, nil, fmt.Errorf("secure: unknown password hash %.12q", stored)
	}
	if _, err := fmt.Sscanf(parts[2], "v=%d", &version); err != nil || version != argon2.Version {
		return cost, nil, nil, fmt.Errorf("secure: unknown argon2 version %q", parts[2])
	}
	if _, err := fmt.Sscanf(parts[3], "m=%d,t=%d,p=%d", &cost.Memory, &cost.Time, &cost.Threads); err != nil || cost.Time < 1 || cost.Threads < 1 {
		return cost, nil, nil, fmt.Errorf("secure: unreadable argon2 cost %q", parts[3])
	}
	if salt, err = base64.RawStdEncoding.DecodeString(parts[4]); err != nil {
		return cost, nil, nil, fmt.Errorf("secure: unreadable argon2 salt: %w", err)
	}
	if hash, err = base64.RawStdEncoding.DecodeString(parts[5]); err != nil || len(hash) < 16 {
		return cost, nil, nil, fmt.Errorf("secure: unreadable argon2 hash")
	}
	return cost, salt, hash, nil
}
