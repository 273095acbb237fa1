package words

import (
	"fmt"
	"regexp"
	"testing"
)

func TestTheWordsAreFitForLabelsOfAHostName(t *testing.T) {
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

func TestPairsSpread(t *testing.T) {
	const many = 2000
	seen := map[string]bool{}
	for i := range many {
		seen[Pair(fmt.Sprint(i))] = true
	}
	if len(seen) < many*9/10 {
		t.Errorf("%d seeds have %d pairs", many, len(seen))
	}
}

// The key of a tenant that is signed up again is found by making it again.
func TestAPairStaysThatOfItsSeed(t *testing.T) {
	if got, want := Pair("doorward"), "cheery-fern"; got != want {
		t.Errorf("the pair is %q, want %q", got, want)
	}
}
