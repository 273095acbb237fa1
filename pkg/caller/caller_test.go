package caller

import (
	"encoding/base64"
	"errors"
	"net/netip"
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
		{Tenant: id.New(now), Key: "K1", RequestID: "r", Address: netip.MustParseAddr("203.0.113.7")},
		{RequestID: "r", Address: netip.MustParseAddr("2001:db8::7")},
		{Tenant: id.New(now), Key: "K1", RequestID: "r", AcceptLanguage: "de-AT, en;q=0.8"},
		{Address: netip.MustParseAddr("::ffff:203.0.113.7")},
		{RequestID: "r", Ended: IDs("").With(id.New(now)).With(id.ID{'\n', 'x'})},
		{RequestID: "r", AcceptLanguage: "de", Ended: IDs("").With(id.ID{})},
	} {
		if got, err := signer.Verify([]byte(signer.Sign(want))); err != nil || got != want {
			t.Errorf("Verify = %+v, %v; want %+v", got, err, want)
		}
	}
}

func TestACallerUnderAnAcceptedSecretIsReadBack(t *testing.T) {
	clock := func() time.Time { return now }
	const first, second = "a secret that is long enough for this", "another one that is long enough for this"
	want := Caller{Tenant: id.New(now), RequestID: "r"}
	for _, c := range []struct {
		what         string
		from, to     *Signer
		isUnderstood bool
	}{
		{"the new secret is accepted already", NewSigner(second, clock, first), NewSigner(first, clock, second), true},
		{"the former secret is still accepted", NewSigner(first, clock, second), NewSigner(second, clock, first), true},
		{"the new secret is not known", NewSigner(second, clock, first), NewSigner(first, clock), false},
		{"the former secret was dropped", NewSigner(first, clock, second), NewSigner(second, clock), false},
	} {
		got, err := c.to.Verify([]byte(c.from.Sign(want)))
		if c.isUnderstood != (err == nil && got == want) || !c.isUnderstood && !errors.Is(err, ErrCaller) {
			t.Errorf("%s: %+v, %v", c.what, got, err)
		}
	}
}

func TestACallerIsRefusedThatWasChangedOrIsOld(t *testing.T) {
	at := now
	signer := NewSigner("a secret that is long enough for this", func() time.Time { return at })
	other := NewSigner("another secret that is long enough too", func() time.Time { return at })
	text := signer.Sign(Caller{Tenant: id.New(now), Key: "K1", Account: id.New(now), RequestID: "r", Address: netip.MustParseAddr("203.0.113.7")})
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
	at = now.Add(-lifetime)
	if _, err := signer.Verify([]byte(text)); err != nil {
		t.Errorf("of a process whose clock is ahead by as much as it may: %v", err)
	}
	at = at.Add(-time.Millisecond)
	refused("from the future", text)
}

// What is read of the members of a Caller is all that there was.
func FuzzCaller(f *testing.F) {
	f.Add(Caller{}.append(nil))
	f.Add(Caller{Tenant: id.New(now), Key: "K1", RequestID: "r", Address: netip.MustParseAddr("203.0.113.7")}.append(nil))
	f.Add(Caller{Account: id.New(now), Address: netip.MustParseAddr("2001:db8::7")}.append(nil))
	f.Add(append(make([]byte, 32), 5, 1, 2, 3, 4, 5, 0))
	f.Add(append(make([]byte, 33), 0xff))
	f.Add(Caller{RequestID: "r", AcceptLanguage: "de", Ended: IDs("").With(id.New(now))}.append(nil))
	f.Fuzz(func(t *testing.T, text []byte) {
		c, ok := parse(text)
		if !ok {
			return
		}
		if again, ok := parse(c.append(nil)); !ok || again != c {
			t.Fatalf("%x is %+v, and that is %+v, %t", text, c, again, ok)
		}
	})
}

func BenchmarkSignAndVerify(b *testing.B) {
	signer := NewSigner("a secret that is long enough for this", time.Now)
	who := Caller{Tenant: id.New(now), Key: "ED27G0JG2T9K5C51AQZ5ZTYG56", Account: id.New(now), RequestID: "0d7f8a3e-3b0c-4b7e-9d7e-2f1f7a3f5b10", Address: netip.MustParseAddr("203.0.113.7")}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := signer.Verify([]byte(signer.Sign(who))); err != nil {
			b.Fatal(err)
		}
	}
}
