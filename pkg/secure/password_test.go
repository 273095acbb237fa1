package secure

import (
	"context"
	"errors"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure/pwhash"
)

var (
	cheap  = pwhash.Cost{Memory: 64, Time: 1, Threads: 1}
	tenant = id.New(time.Unix(1, 0))
)

func TestAPasswordMatchesItsOwnHashAlone(t *testing.T) {
	p := NewPasswords(cheap, 1, 10)
	stored, err := p.Hash(t.Context(), tenant, "Changeme1!")
	if err != nil {
		t.Fatal(err)
	}
	for _, try := range []struct {
		password Secret
		want     bool
	}{{"Changeme1!", true}, {"changeme1!", false}, {"Changeme1!\x00", false}, {"", false}, {Secret(strings.Repeat("Changeme1!", 100)), false}} {
		if got, stale, err := p.Verify(t.Context(), tenant, stored, try.password); err != nil || got != try.want || stale {
			t.Errorf("Verify(%.12q…) = %v, %v, %v; want %v", try.password.Reveal(), got, stale, err, try.want)
		}
	}
}

func TestAPasswordIsTheSameInBothNormalForms(t *testing.T) {
	p := NewPasswords(cheap, 1, 10)
	stored, err := p.Hash(t.Context(), tenant, "p\u00e4ssword") // ä as one character
	if err != nil {
		t.Fatal(err)
	}
	if match, _, err := p.Verify(t.Context(), tenant, stored, "pa\u0308ssword"); err != nil || !match { // a and a combining mark
		t.Fatalf("Verify = %v, %v", match, err)
	}
}

func TestAPasswordLongerThanOtherHashesTakeIsNotCut(t *testing.T) {
	p := NewPasswords(cheap, 1, 10)
	long := Secret(strings.Repeat("a", 200))
	stored, err := p.Hash(t.Context(), tenant, long)
	if err != nil {
		t.Fatal(err)
	}
	if match, _, _ := p.Verify(t.Context(), tenant, stored, long[:72]); match {
		t.Fatal("the first 72 characters are enough")
	}
}

func TestAnAbsentAccountNeverMatches(t *testing.T) {
	p := NewPasswords(cheap, 1, 10)
	for _, password := range []Secret{"", "Changeme1!", Secret(make([]byte, 32))} {
		if match, _, err := p.Verify(t.Context(), tenant, "", password); match || err != nil {
			t.Fatalf("Verify = %v, %v", match, err)
		}
	}
}

func TestAChangedCostIsStale(t *testing.T) {
	stored, err := NewPasswords(cheap, 1, 10).Hash(t.Context(), tenant, "Changeme1!")
	if err != nil {
		t.Fatal(err)
	}
	dearer := NewPasswords(pwhash.Cost{Memory: 128, Time: 1, Threads: 1}, 1, 10)
	if match, stale, err := dearer.Verify(t.Context(), tenant, stored, "Changeme1!"); !match || !stale || err != nil {
		t.Fatalf("Verify = %v, %v, %v", match, stale, err)
	}
	const imported = "$2a$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW"
	if match, stale, err := dearer.Verify(t.Context(), tenant, imported, "U*U"); !match || !stale || err != nil {
		t.Fatalf("an imported hash: Verify = %v, %v, %v", match, stale, err)
	}
	for _, form := range []string{stored, imported} {
		if _, stale, _ := dearer.Verify(t.Context(), tenant, form, "wrong"); stale {
			t.Fatal("a wrong password asks for a new hash")
		}
	}
}

func TestAFullQueueIsRefusedAtOnce(t *testing.T) {
	p := NewPasswords(cheap, 1, 1)
	if err := p.acquireWorker(t.Context(), tenant); err != nil { // the only worker is busy
		t.Fatal(err)
	}
	waiting, stop := context.WithCancel(t.Context())
	waited := make(chan error, 1)
	go func() { waited <- p.acquireWorker(waiting, tenant) }() // the queue is full
	for p.queue.Len() == 0 {                                   // until the goroutine waits
		select {
		case err := <-waited:
			t.Fatal(err)
		default:
		}
	}
	_, err := p.Hash(t.Context(), tenant, "Changeme1!")
	if !errors.Is(err, apierr.Unavailable) || apierr.From(err).RetryAfter == 0 {
		t.Fatalf("Hash = %v; want Unavailable with a time to wait", err)
	}
	stop()
	if err := <-waited; !errors.Is(err, apierr.Unavailable) {
		t.Fatalf("the waiter that gave up got %v", err)
	}
	if left := p.queue.Len(); left != 0 {
		t.Fatalf("%d wait after the only waiter gave up", left)
	}
	p.releaseWorker(tenant, 0)
	if _, err := p.Hash(t.Context(), tenant, "Changeme1!"); err != nil {
		t.Fatalf("after the worker was released: %v", err)
	}
}

func TestUnderAQuotaAWorkerPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPasswords(cheap, 1, 1)
		p.workerShare = 0.8
		if err := p.acquireWorker(t.Context(), tenant); err != nil {
			t.Fatal(err)
		}
		p.releaseWorker(tenant, 20*time.Millisecond)
		released := time.Now()
		if err := p.acquireWorker(t.Context(), tenant); err != nil {
			t.Fatal(err)
		}
		if pause := time.Since(released); pause != 5*time.Millisecond {
			t.Errorf("the worker paused for %s after 20ms of work; want 5ms, a fifth of the time", pause)
		}
		p.workerShare = 1
		p.releaseWorker(tenant, 20*time.Millisecond)
		if err := p.acquireWorker(t.Context(), tenant); err != nil || time.Since(released) != 5*time.Millisecond {
			t.Errorf("without a quota: %v after %s", err, time.Since(released))
		}
	})
}

func TestNoMoreHashesThanWorkersAreComputedAtOnce(t *testing.T) {
	p := NewPasswords(cheap, 2, 1000)
	var now, most atomic.Int64
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() {
			err := p.runInPool(t.Context(), tenant, func() error {
				if n := now.Add(1); n > most.Load() {
					most.Store(n)
				}
				defer now.Add(-1)
				pwhash.Hash(cheap, []byte("Changeme1!"))
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if got := most.Load(); got > int64(p.workers) {
		t.Errorf("%d hashes were computed at once in %d workers", got, p.workers)
	}
}

func TestClosingWaitsForTheWorkers(t *testing.T) {
	p := NewPasswords(cheap, 1, 1)
	if err := p.acquireWorker(t.Context(), tenant); err != nil {
		t.Fatal(err)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.Close(over); !errors.Is(err, context.Canceled) {
		t.Errorf("with a busy worker: %v", err)
	}
	p.releaseWorker(tenant, 0)
	if err := p.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestTheRuntimeHasProcessorsBesidesTheWorkers(t *testing.T) {
	before := runtime.GOMAXPROCS(0)
	p := NewPasswords(cheap, 0, 1)
	p.PrepareProcess()
	p.PrepareProcess()
	if got, want := runtime.GOMAXPROCS(0), before+p.workers; got != want {
		t.Errorf("GOMAXPROCS is %d, want %d", got, want)
	}
	if got, want := debug.SetMemoryLimit(-1), int64(memoryBesideHashes+p.workers*int(cheap.Memory)<<10); got != want {
		t.Errorf("the soft memory limit is %d bytes, want %d", got, want)
	}
}

func TestAPasswordThatNoAccountCanHaveCostsNoMoreThanAnother(t *testing.T) {
	p := NewPasswords(cheap, 1, 10)
	stored, err := p.Hash(t.Context(), tenant, Secret(strings.Repeat("a", MaxPassword)))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		password Secret
		want     bool
	}{
		{Secret(strings.Repeat("a", MaxPassword)), true},
		{Secret(strings.Repeat("a", MaxPassword+1)), false},
		{Secret(strings.Repeat("a", 1<<20)), false},
		{Secret(strings.Repeat("a", MaxPassword-1) + "\x00"), false},
	} {
		if match, _, err := p.Verify(t.Context(), tenant, stored, c.password); match != c.want || err != nil {
			t.Errorf("a password of %d bytes matches: %v, %v", len(c.password), match, err)
		}
	}
	for _, bcrypt := range []string{"$2a$04$CCCCCCCCCCCCCCCCCCCCC.ZP48wSDJeZC4KEEZRkahyfLke0vxZNC"} {
		if match, _, err := p.Verify(t.Context(), tenant, bcrypt, Secret(strings.Repeat("a", 71)+"\x00b")); match || err != nil {
			t.Errorf("a NUL ended the password of bcrypt: %v, %v", match, err)
		}
	}
}

func TestAPasswordIsFoundAmongManyHashes(t *testing.T) {
	p := NewPasswords(cheap, 1, 10)
	var stored []string
	for _, password := range []Secret{"one", "two"} {
		hash, err := p.Hash(t.Context(), tenant, password)
		if err != nil {
			t.Fatal(err)
		}
		stored = append(stored, hash)
	}
	stored = append(stored, "$2a$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW")
	for password, want := range map[Secret]bool{"one": true, "two": true, "U*U": true, "three": false} {
		if match, err := p.MatchesAny(t.Context(), tenant, stored, password); match != want || err != nil {
			t.Errorf("MatchesAny(%q) = %v, %v", password.Reveal(), match, err)
		}
	}
	if match, err := p.MatchesAny(t.Context(), tenant, nil, "one"); match || err != nil {
		t.Errorf("among none: %v, %v", match, err)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.MatchesAny(over, tenant, stored, "three"); !errors.Is(err, apierr.Unavailable) {
		t.Errorf("after its request ended: %v", err)
	}
}

func TestABrokenStoredHashIsAnInternalError(t *testing.T) {
	p := NewPasswords(cheap, 1, 10)
	for _, stored := range []string{"plain", "$2a$31$CCCCCCCCCCCCCCCCCCCCC.7uG0VCzI2bS7j6ymqJi9CdcdxiRTWNy", "$argon2id$v=19$m=99999999,t=1,p=1$AAAA$AAAA"} {
		if _, _, err := p.Verify(t.Context(), tenant, stored, "x"); apierr.From(err) != apierr.Internal {
			t.Errorf("Verify(%s) = %v; want an internal error", stored, err)
		}
	}
}
