package secure

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
)

func ring(t *testing.T, keys ...Secret) *Keyring {
	t.Helper()
	var text []string
	for _, k := range keys {
		text = append(text, k.Reveal())
	}
	r, err := ParseKeyring(Secret(strings.Join(text, ",")))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestASealedSecretOpensForItsPurposeAlone(t *testing.T) {
	r := ring(t, NewMasterKey("k1"))
	sealed := r.Seal("hunter2", "row/1")
	if bytes.Contains(sealed, []byte("hunter2")) {
		t.Fatal("the sealed value shows the secret")
	}
	if got, err := r.Open(sealed, "row/1"); err != nil || got != "hunter2" {
		t.Fatalf("Open = %q, %v", got.Reveal(), err)
	}
	if _, err := r.Open(sealed, "row/2"); !errors.Is(err, ErrSealed) {
		t.Fatalf("a value moved to another row opened: %v", err)
	}
	for i := range sealed {
		changed := bytes.Clone(sealed)
		changed[i] ^= 1
		if _, err := r.Open(changed, "row/1"); err == nil {
			t.Fatalf("a value changed at byte %d opened", i)
		}
	}
	for n := range sealed {
		if _, err := r.Open(sealed[:n], "row/1"); err == nil {
			t.Fatalf("a value cut to %d bytes opened", n)
		}
	}
}

func TestAMasterKeyRotates(t *testing.T) {
	older, newer := NewMasterKey("k1"), NewMasterKey("k2")
	before := ring(t, older)
	sealed := before.Seal("hunter2", "x")

	both := ring(t, newer, older)
	if got, err := both.Open(sealed, "x"); err != nil || got != "hunter2" {
		t.Fatalf("the older key does not open: %v", err)
	}
	if bytes.HasPrefix(sealed, both.ActiveKeyPrefix()) {
		t.Fatal("a value under the older key bears the mark of the newer")
	}
	again := both.Seal("hunter2", "x")
	if !bytes.HasPrefix(again, both.ActiveKeyPrefix()) {
		t.Fatal("a value under the newer key does not bear its mark")
	}
	if _, err := before.Open(again, "x"); !errors.Is(err, ErrSealed) {
		t.Fatalf("the older key alone opened a value of the newer: %v", err)
	}
}

func TestADerivedKeyIsForOnePurpose(t *testing.T) {
	first, second := NewMasterKey("k1"), NewMasterKey("k2")
	before := ring(t, first)
	name, key := before.Derive("a")
	if name != "k1" || len(key) != 32 || strings.Contains(first.Reveal(), key.Reveal()) {
		t.Fatalf("the key %s has %d bytes", name, len(key))
	}
	if _, other := before.Derive("b"); other == key {
		t.Error("two purposes have one key")
	}
	after := ring(t, second, first)
	if got, err := after.Derived("k1", "a"); err != nil || got != key {
		t.Errorf("after a rotation the key is another, %v", err)
	}
	if name, other := after.Derive("a"); name != "k2" || other == key {
		t.Error("the active key is the former")
	}
	if _, err := ring(t, second).Derived("k1", "a"); !errors.Is(err, ErrSealed) {
		t.Errorf("a key that was dropped returns %v", err)
	}
}

func TestAMasterKeyThatIsNoKeyIsRefused(t *testing.T) {
	for _, text := range []Secret{"", "k1", "k1:", "k1:abc", ":AAAA", NewMasterKey("a") + "," + NewMasterKey("a")} {
		if _, err := ParseKeyring(text); err == nil {
			t.Errorf("ParseKeyring accepted %q", text.Reveal())
		} else if text.Reveal() != "" && len(text.Reveal()) > 4 && strings.Contains(err.Error(), text.Reveal()) {
			t.Errorf("the error shows the key: %v", err)
		}
	}
}

func TestASecretIsNotPrinted(t *testing.T) {
	s := Secret("hunter2")
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "secret", s)
	for _, text := range []string{fmt.Sprint(s), fmt.Sprintf("%s %v %q %#v %x", s, s, s, s, s), fmt.Sprintf("%+v", struct{ S Secret }{s}), log.String()} {
		if strings.Contains(text, "hunter2") || strings.Contains(text, "68756e74657232") {
			t.Errorf("the secret is printed: %s", text)
		}
	}
}
