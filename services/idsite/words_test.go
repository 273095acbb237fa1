package idsite

import (
	"fmt"
	"regexp"
	"testing"
)

func TestTheWordsAreFitForTenantKeys(t *testing.T) {
	form := regexp.MustCompile(`^[a-z]{2,31}$`)
	for _, words := range [][]string{adjectives, nouns} {
		seen := map[string]bool{}
		for _, word := range words {
			if !form.MatchString(word) || seen[word] {
				t.Errorf("%q is not fit, or there twice", word)
			}
			seen[word] = true
		}
	}
	if pairs := len(adjectives) * len(nouns); pairs < 30_000 {
		t.Errorf("there are only %d pairs", pairs)
	}
}

func TestTenantKeysSpread(t *testing.T) {
	const many = 2000
	seen := map[string]bool{}
	for i := range many {
		seen[tenantKey(fmt.Sprint(i), 0)] = true
	}
	if len(seen) < many*9/10 || tenantKey("a", 0) == tenantKey("a", 1) {
		t.Errorf("%d seeds have %d keys", many, len(seen))
	}
}
