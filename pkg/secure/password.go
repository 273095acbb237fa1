package secure

import (
	"context"
	"strings"
	"sync/atomic"
	"time"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/secure/pwhash"
)

// MaxPassword is how many bytes a password can have. No account has a longer
// one: 255 characters of four bytes, taken apart into base letters and marks,
// stay below.
const MaxPassword = 4096

// Passwords hashes and verifies passwords. Hashes are computed in a bounded
// number of places with a bounded queue; what does not fit is refused at once
// with 503 and Retry-After, so that a flood of logins does not queue without
// end. Where pwhash.InChildren was called, each place is a child process of low
// priority, so that the flood does not delay other requests either.
type Passwords struct {
	cost    pwhash.Cost
	places  chan *pwhash.Place
	waiting atomic.Int64
	queue   int64
	dummy   string
}

// NewPasswords makes a pool of workers places and a queue of queue waiters.
func NewPasswords(cost pwhash.Cost, workers, queue int) *Passwords {
	p := &Passwords{cost: cost, places: make(chan *pwhash.Place, workers), queue: int64(queue), dummy: cost.Dummy()}
	for range workers {
		p.places <- &pwhash.Place{}
	}
	return p
}

// Close waits for the hashes that are being computed and ends the children. A
// pool that is closed waits for ever.
func (p *Passwords) Close(ctx context.Context) error {
	for range cap(p.places) {
		select {
		case at := <-p.places:
			at.Close()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// Hash makes the stored form of a password, in the PHC string format.
func (p *Passwords) Hash(ctx context.Context, password Secret) (string, error) {
	at, err := p.enter(ctx)
	if err != nil {
		return "", err
	}
	defer p.leave(at)
	return at.Hash(p.cost, []byte(password)), nil
}

// Verify compares a password with its stored form, one of our own or one that
// pwhash.ParseImported gave. An empty stored form, and a password that no account can
// have, cost the work of a hash of our own and never match, so that time does
// not tell whether an account exists. stale asks the caller to hash the
// password anew, because its form was imported or the cost was changed.
func (p *Passwords) Verify(ctx context.Context, stored string, password Secret) (match, stale bool, err error) {
	at, err := p.enter(ctx)
	if err != nil {
		return false, false, err
	}
	defer p.leave(at)
	hopeless := stored == "" || len(password) > MaxPassword || strings.ContainsRune(password.Reveal(), 0)
	if hopeless {
		stored, password = p.dummy, ""
	}
	match, cost, err := at.Compare(stored, []byte(password))
	if err != nil || hopeless {
		return false, false, err
	}
	return match, match && cost != p.cost, nil
}

// MatchesAny reports whether the password is behind one of the stored forms. It
// takes one place for all of them, and ends early with the context.
func (p *Passwords) MatchesAny(ctx context.Context, stored []string, password Secret) (bool, error) {
	if len(stored) == 0 {
		return false, nil
	}
	at, err := p.enter(ctx)
	if err != nil {
		return false, err
	}
	defer p.leave(at)
	for _, each := range stored {
		if ctx.Err() != nil {
			return false, ended()
		}
		if match, _, err := at.Compare(each, []byte(password)); match || err != nil {
			return match, err
		}
	}
	return false, nil
}

// enter waits for a place.
func (p *Passwords) enter(ctx context.Context) (*pwhash.Place, error) {
	select {
	case at := <-p.places:
		return at, nil
	default:
	}
	if p.waiting.Add(1) > p.queue {
		p.waiting.Add(-1)
		return nil, apierr.Unavailable.Because("too many passwords are being checked at this moment; repeat the request later").After(time.Second)
	}
	defer p.waiting.Add(-1)
	select {
	case at := <-p.places:
		return at, nil
	case <-ctx.Done():
		return nil, ended()
	}
}

func (p *Passwords) leave(at *pwhash.Place) { p.places <- at }

func ended() error {
	return apierr.Unavailable.Because("the request ended before its password could be checked").After(time.Second)
}
