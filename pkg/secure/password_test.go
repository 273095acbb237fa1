package secure

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/doorward/doorward/pkg/apierr"
)

var cheap = Cost{Memory: 64, Time: 1, Threads: 1}

func TestAPasswordMatchesItsOwnHashAlone(t *testing.T) {
	p := NewPasswords(cheap, 1, 10)
	stored, err := p.Hash(t.Context(), "Changeme1!")
	if err != nil {
		t.Fatal(err)
	}
	for _, try := range []struct {
		password Secret
		want     bool
	}{{"Changeme1!", true}, {"changeme1!", false}, {"Changeme1!\x00", false}, {"", false}, {Secret(strings.Repeat("Changeme1!", 100)), false}} {
		if got, stale, err := p.Verify(t.Context(), stored, try.password); err != nil || got != try.want || stale {
			t.Errorf("Verify(%.12q…) = %v, %v, %v; want %v", try.password.Reveal(), got, stale, err, try.want)
		}
	}
}

func TestAPasswordIsTheSameInBothNormalForms(t *testing.T) {
	p := NewPasswords(cheap, 1, 10)
	stored, err := p.Hash(t.Context(), "p\u00e4ssword") // ä as one character
	if err != nil {
		t.Fatal(err)
	}
	if match, _, err := p.Verify(t.Context(), stored, "pa\u0308ssword"); err != nil || !match { // a and a combining mark
		t.Fatalf("Verify = %v, %v", match, err)
	}
}

func TestAPasswordLongerThanOtherHashesTakeIsNotCut(t *testing.T) {
	p := NewPasswords(cheap, 1, 10)
	long := Secret(strings.Repeat("a", 200))
	stored, err := p.Hash(t.Context(), long)
	if err != nil {
		t.Fatal(err)
	}
	if match, _, _ := p.Verify(t.Context(), stored, long[:72]); match {
		t.Fatal("the first 72 characters are enough")
	}
}

func TestAnAbsentAccountNeverMatches(t *testing.T) {
	p := NewPasswords(cheap, 1, 10)
	for _, password := range []Secret{"", "Changeme1!", Secret(make([]byte, hashLength))} {
		if match, _, err := p.Verify(t.Context(), "", password); match || err != nil {
			t.Fatalf("Verify = %v, %v", match, err)
		}
	}
}

func TestAChangedCostIsStale(t *testing.T) {
	stored, err := NewPasswords(cheap, 1, 10).Hash(t.Context(), "Changeme1!")
	if err != nil {
		t.Fatal(err)
	}
	dearer := NewPasswords(Cost{Memory: 128, Time: 1, Threads: 1}, 1, 10)
	if match, stale, err := dearer.Verify(t.Context(), stored, "Changeme1!"); !match || !stale || err != nil {
		t.Fatalf("Verify = %v, %v, %v", match, stale, err)
	}
	if _, stale, _ := dearer.Verify(t.Context(), stored, "wrong"); stale {
		t.Fatal("a wrong password asks for a new hash")
	}
}

func TestAFullQueueIsRefusedAtOnce(t *testing.T) {
	p := NewPasswords(cheap, 1, 1)
	leave, err := p.enter(t.Context()) // the only place is taken
	if err != nil {
		t.Fatal(err)
	}
	waiting, stop := context.WithCancel(t.Context())
	waited := make(chan error, 1)
	go func() {
		_, err := p.enter(waiting) // the only place in the queue
		waited <- err
	}()
	for p.waiting.Load() == 0 { // until the goroutine stands in the queue
		select {
		case err := <-waited:
			t.Fatal(err)
		default:
		}
	}
	_, err = p.Hash(t.Context(), "Changeme1!")
	if !errors.Is(err, apierr.Unavailable) || apierr.From(err).RetryAfter == 0 {
		t.Fatalf("Hash = %v; want Unavailable with a time to wait", err)
	}
	stop()
	if err := <-waited; !errors.Is(err, apierr.Unavailable) {
		t.Fatalf("the waiter that gave up got %v", err)
	}
	leave()
	if _, err := p.Hash(t.Context(), "Changeme1!"); err != nil {
		t.Fatalf("after the place was given back: %v", err)
	}
}

func FuzzStoredHash(f *testing.F) {
	f.Add(encode(cheap, make([]byte, 16), make([]byte, 32)))
	f.Add("$argon2id$v=19$m=1,t=1,p=0$$")
	f.Fuzz(func(t *testing.T, stored string) { _, _, _, _ = decode(stored) })
}
