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
