package maildomain

import (
	"errors"
	"strings"
	"testing"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/services/directory/store"
)

func TestDomainPatterns(t *testing.T) {
	for _, c := range []struct {
		pattern string
		matches []string
		misses  []string
	}{
		{
			"example.test", []string{"example.test"},
			[]string{"", "xexample.test", "a.example.test", "example.testx", "example"},
		},
		{"*", []string{"", "example.test"}, nil},
		{"**", []string{"", "example.test"}, nil},
		{
			"*.example.test", []string{"a.example.test", "a.b.example.test"},
			[]string{"example.test", "myexample.test", "a.example.test.evil.test"},
		},
		{
			"*example.test", []string{"example.test", "myexample.test", "a.example.test"},
			[]string{"example.test.evil.test", "xample.test"},
		},
		{"example.*", []string{"example.test", "example.co.test", "example."}, []string{"example", "my.example.test"}},
		{"a*a", []string{"aa", "aba", "a.a"}, []string{"a", "ab", "ba", ""}},
		{"ab*ba", []string{"abba", "abxba"}, []string{"aba", "ab", "ba"}},
		{"a*b*a", []string{"aba", "axbxa", "abba"}, []string{"aa", "ab", "a", "abb"}},
		{"*a*", []string{"a", "bab"}, []string{"", "b"}},
		{"a**b", []string{"ab", "axb"}, []string{"a", "b"}},
		{"*ab*ab*", []string{"abab", "xabyabz"}, []string{"ab", "aab", "aba"}},
		{"mail.*.test", []string{"mail.a.test", "mail.a.b.test", "mail..test"}, []string{"mail.test", "amail.a.test"}},
		{"", []string{""}, []string{"a"}},
	} {
		for _, domain := range c.matches {
			if !match(c.pattern, domain) {
				t.Errorf("%q does not match %q", c.pattern, domain)
			}
		}
		for _, domain := range c.misses {
			if match(c.pattern, domain) {
				t.Errorf("%q matches %q", c.pattern, domain)
			}
		}
	}
}

// matchSimply tries every length for every *.
func matchSimply(pattern, domain string) bool {
	switch {
	case pattern == "":
		return domain == ""
	case pattern[0] == '*':
		return matchSimply(pattern[1:], domain) || domain != "" && matchSimply(pattern, domain[1:])
	}
	return domain != "" && pattern[0] == domain[0] && matchSimply(pattern[1:], domain[1:])
}

func TestDomainPatternsMatchAsTheSimpleMatcherDoes(t *testing.T) {
	words := func(alphabet string, most int) []string {
		all := []string{""}
		for from, n := 0, 0; n < most; n++ {
			until := len(all)
			for _, word := range all[from:until] {
				for _, letter := range alphabet {
					all = append(all, word+string(letter))
				}
			}
			from = until
		}
		return all
	}
	domains := words("ab", 6)
	for _, pattern := range words("ab*", 5) {
		for _, domain := range domains {
			if got, want := match(pattern, domain), matchSimply(pattern, domain); got != want {
				t.Fatalf("match(%q, %q) = %t", pattern, domain, got)
			}
		}
	}
}

func FuzzMatchDomain(f *testing.F) {
	for _, seed := range [][2]string{
		{"*.example.test", "a.example.test"}, {"a*a", "a"}, {"**a*b", "aab"}, {"ä*", "äö"}, {"*\xff*", "\xff"},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, pattern, domain string) {
		pattern, domain = pattern[:min(len(pattern), 10)], domain[:min(len(domain), 12)]
		if got, want := match(pattern, domain), matchSimply(pattern, domain); got != want {
			t.Fatalf("match(%q, %q) = %t", pattern, domain, got)
		}
	})
}

// The inputs are so long that a matcher which tries again from where it was,
// some 10^12 steps or more, would not end within the life of a test.
func TestHostileDomainPatternsAreReadOnce(t *testing.T) {
	const n = 1 << 20
	domain := strings.Repeat("a", 2*n)
	for name, c := range map[string]struct {
		pattern string
		want    bool
	}{
		"a star after every letter":        {strings.Repeat("a*", n) + "b", false},
		"the same that matches":            {strings.Repeat("a*", n) + "a", true},
		"stars alone":                      {strings.Repeat("*", n) + "b", false},
		"one long part that almost fits":   {"*" + strings.Repeat("a", n) + "b*", false},
		"long parts that almost fit":       {"*" + strings.Repeat("a", n/2) + "*" + strings.Repeat("a", n) + "b*", false},
		"parts that are a letter too much": {strings.Repeat("*aa", n) + "*a", false},
	} {
		if got := match(c.pattern, domain); got != c.want {
			t.Errorf("%s: matches is %t", name, got)
		}
	}
}

func TestADomainIsTheSameInBothOfItsForms(t *testing.T) {
	for _, c := range []struct {
		pattern, domain string
		listed          bool
	}{
		{"münchen.example.test", "xn--mnchen-3ya.example.test", true},
		{"xn--mnchen-3ya.example.test", "MÜNCHEN.example.test", true},
		{"xn--mnchen-3ya.example.test", "XN--mnchen-3YA.example.test", true},
		{"*ünchen.example.test", "xn--mnchen-3ya.example.test", true},
		{"*.example.test", "xn--mnchen-3ya.example.test", true},
		{"xn--*.example.test", "xn--mnchen-3ya.example.test", true},
		{"munchen.example.test", "xn--mnchen-3ya.example.test", false},
		{"xn--0.example.test", "xn--1.example.test", false}, // neither can be read
	} {
		black := store.CreationPolicy{EmailDomainBlacklist: []string{c.pattern}}
		if err := Check(black, "jo@"+c.domain); errors.Is(err, apierr.DomainBlacklisted) != c.listed {
			t.Errorf("%q on the blacklist and %q: %v", c.pattern, c.domain, err)
		}
		white := store.CreationPolicy{EmailDomainWhitelist: []string{c.pattern}}
		if err := Check(white, "jo@"+c.domain); (err == nil) != c.listed {
			t.Errorf("%q on the whitelist and %q: %v", c.pattern, c.domain, err)
		}
	}
}
