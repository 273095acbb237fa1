package caller

import (
	"encoding/base64"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/id"
)

var now = time.Date(2026, 11, 20, 20, 25, 0, 0, time.UTC)

func TestACallerIsReadBack(t *testing.T) {
	signer := NewSigner("a secret that is long enough for this", func() time.Time { return now })
	for _, want := range []Caller{
		{},
		{Tenant: id.New(now), Key: "K1", Account: id.New(now), RequestID: "r"},
		{Tenant: id.New(now), RequestID: "r"},
		{Key: strings.Repeat("k", 1000), RequestID: strings.Repeat("r", 1000)},
	} {
		if got, err := signer.Verify([]byte(signer.Sign(want))); err != nil || got != want {
			t.Errorf("Verify = %+v, %v; want %+v", got, err, want)
		}
	}
}

func TestACallerIsRefusedThatWasChangedOrIsOld(t *testing.T) {
	at := now
	signer := NewSigner("a secret that is long enough for this", func() time.Time { return at })
	other := NewSigner("another secret that is long enough too", func() time.Time { return at })
	text := signer.Sign(Caller{Tenant: id.New(now), Key: "K1", Account: id.New(now), RequestID: "r"})
	refused := func(name, text string) {
		t.Helper()
		if _, err := signer.Verify([]byte(text)); !errors.Is(err, ErrCaller) {
			t.Errorf("%s: Verify(%q) = %v, want ErrCaller", name, text, err)
		}
	}
	refused("nothing", "")
	refused("a letter", "x")
	refused("another alphabet", strings.Repeat("+", len(text)))
	refused("longer", text+"A")
	refused("padded", text+"=")
	refused("another secret", other.Sign(Caller{}))
	for end := range text {
		refused("cut off", text[:end])
	}
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	for place := range raw {
		raw[place] ^= 1
		refused("one bit changed", base64.RawURLEncoding.EncodeToString(raw))
		raw[place] ^= 1
	}
	at = now.Add(lifetime)
	if _, err := signer.Verify([]byte(text)); err != nil {
		t.Errorf("at the end of its life: %v", err)
	}
	at = at.Add(time.Millisecond)
	refused("old", text)
}

func BenchmarkSignAndVerify(b *testing.B) {
	signer := NewSigner("a secret that is long enough for this", time.Now)
	who := Caller{Tenant: id.New(now), Key: "ED27G0JG2T9K5C51AQZ5ZTYG56", Account: id.New(now), RequestID: "0d7f8a3e-3b0c-4b7e-9d7e-2f1f7a3f5b10"}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := signer.Verify([]byte(signer.Sign(who))); err != nil {
			b.Fatal(err)
		}
	}
}
