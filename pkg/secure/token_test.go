package secure

import (
	"regexp"
	"testing"
)

func TestTokensHaveTheirAlphabetAndDiffer(t *testing.T) {
	seen := map[string]bool{}
	for range 1000 {
		token, key := Token(22).Reveal(), KeyID()
		if !regexp.MustCompile(`^[0-9A-Za-z]{22}$`).MatchString(token) || !regexp.MustCompile(`^[0-9A-Z]{26}$`).MatchString(key) {
			t.Fatalf("%q or %q has another alphabet", token, key)
		}
		if seen[token] || seen[key] {
			t.Fatal("a token came twice")
		}
		seen[token], seen[key] = true, true
	}
}

func TestADerivedKeyServesOnePurpose(t *testing.T) {
	key := Derive("a secret that is long enough for this", "logins")
	if len(key) != 32 || key != Derive("a secret that is long enough for this", "logins") {
		t.Errorf("the key has %d bytes, or is another each time", len(key))
	}
	if key == Derive("a secret that is long enough for this", "others") || key == Derive("another secret that is long enough too", "logins") {
		t.Error("two purposes or two secrets have one key")
	}
}
