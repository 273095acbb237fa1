package caller

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/id"
)

func TestACallerIsReadBackUnlessItWasChangedOrIsOld(t *testing.T) {
	now := time.Date(2026, 11, 20, 20, 25, 0, 0, time.UTC)
	signer := NewSigner("a secret that is long enough for this", func() time.Time { return now })
	want := Caller{Tenant: id.New(now), Key: "K1", Account: id.New(now), RequestID: "r"}
	text := signer.Sign(want)
	if got, err := signer.Verify(text); err != nil || got != want {
		t.Fatalf("Verify = %+v, %v; want %+v", got, err, want)
	}
	other := NewSigner("another secret that is long enough too", func() time.Time { return now })
	if _, err := other.Verify(text); !errors.Is(err, ErrCaller) {
		t.Fatalf("another secret verifies: %v", err)
	}
	for _, forged := range []string{"", ".", "x", text + "A", strings.Replace(text, ".", "..", 1), text[:len(text)-2], other.Sign(want)} {
		if _, err := signer.Verify(forged); err == nil {
			t.Errorf("Verify(%q) succeeded", forged)
		}
	}
	now = now.Add(lifetime + time.Millisecond)
	if _, err := signer.Verify(text); !errors.Is(err, ErrCaller) {
		t.Fatalf("an old caller verifies: %v", err)
	}
}
