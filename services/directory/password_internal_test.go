package directory

import (
	"errors"
	"strings"
	"testing"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/services/directory/store"
)

func TestStrength(t *testing.T) {
	policy := store.PasswordPolicy{
		MinLength: 4, MaxLength: 10, MinLowerCase: 1, MinUpperCase: 1, MinNumeric: 1, MinSymbol: 1, MinDiacritic: 1,
	}
	bare := store.PasswordPolicy{MinLength: 1, MaxLength: 255}
	for _, c := range []struct {
		name     string
		policy   store.PasswordPolicy
		password string
		want     *apierr.Error
		says     string
	}{
		{"at the least length", policy, "éE1!", nil, ""},
		{
			"below it", policy, "éE1", apierr.TooShort,
			"has 3 characters and needs at least 4 characters and 1 symbol character",
		},
		{"below it, though it has more of base letters and marks", policy, "e\u0301E1", apierr.TooShort, "has 3 characters"},
		{"at the greatest length", policy, "éE1!aaaaaa", nil, ""},
		{"at it, typed in base letters and marks", policy, "e\u0301E1!aaaaaa", nil, ""},
		{"above it", policy, "éE1!aaaaaaa", apierr.TooLong, "has 11 characters; it may have at most 10 characters"},
		{"no lower case", policy, "ÉE1!", apierr.BadRequest, "requires at least 1 lowercase character"},
		{"no upper case", policy, "ée1!", apierr.BadRequest, "requires at least 1 uppercase character"},
		{"no number", policy, "éEe!", apierr.BadRequest, "requires at least 1 numeric character"},
		{"no symbol", policy, "éE1 ", apierr.BadRequest, "requires at least 1 symbol character"},
		{"no diacritic", policy, "eE1!", apierr.BadRequest, "requires at least 1 diacritic character"},
		{
			"one of two", store.PasswordPolicy{MinLength: 1, MaxLength: 255, MinNumeric: 2}, "a1", apierr.BadRequest,
			"requires at least 2 numeric characters",
		},
		{"everything missing at once", policy, "    ", apierr.BadRequest,
			"requires at least 1 lowercase character, 1 uppercase character, 1 numeric character, 1 symbol character and 1 diacritic character"},
		{"too long and without symbols", store.PasswordPolicy{MaxLength: 2, MinSymbol: 2}, "aaa", apierr.TooLong,
			"has 3 characters; it may have at most 2 characters and needs at least 2 symbol characters"},
		{
			"two diacritics", store.PasswordPolicy{MaxLength: 9, MinDiacritic: 2}, "aaa", apierr.BadRequest,
			"at least 2 diacritic characters",
		},
		{"255 characters", bare, strings.Repeat("漢", 255), nil, ""},
		{"256 characters", bare, strings.Repeat("漢", 256), apierr.TooLong, "has 256 characters; it may have at most 255"},
		{
			"256 characters whatever a policy says", store.PasswordPolicy{MaxLength: 1000}, strings.Repeat("a", 256),
			apierr.TooLong, "at most 255",
		},
		{"a megabyte", bare, strings.Repeat("a", 1<<20), apierr.TooLong, "has 1048576 characters"},
		{"NUL", bare, "a\x00b", apierr.Format, "NUL"},
	} {
		err := checkStrength(c.policy, c.password)
		if c.want == nil {
			if err != nil {
				t.Errorf("%s is refused: %v", c.name, err)
			}
			continue
		}
		if !errors.Is(err, c.want) || !strings.Contains(apierr.From(err).Reason, c.says) {
			t.Errorf("%s: %v, want %v that says %q", c.name, err, c.want, c.says)
		}
		_, rule, _ := strings.Cut(c.says, "; it ")
		if message := apierr.From(err).Message; c.want != apierr.BadRequest && !strings.Contains(message, rule) {
			t.Errorf("%s: the end user reads %q, without %q", c.name, message, rule)
		}
	}
}

// docs/interface/errors.md#texts-that-clients-compare
func TestTheEndUserReadsWhichCharactersAPasswordLacks(t *testing.T) {
	policy := store.PasswordPolicy{MaxLength: 10, MinUpperCase: 1, MinNumeric: 2}
	for password, want := range map[string]string{
		"a12": "Password requires at least 1 uppercase character.",
		"A1":  "Password requires at least 2 numeric characters.",
		"a":   "Password requires at least 1 uppercase character. Password requires at least 2 numeric characters.",
	} {
		if err := checkStrength(policy, password); apierr.From(err).Message != want {
			t.Errorf("%q: the end user reads %q, want %q", password, apierr.From(err).Message, want)
		}
	}
}

// docs/interface/errors.md#texts-that-clients-compare
func TestAnUnknownLoginMatchesNoKnownResource(t *testing.T) {
	if text := apierr.From(errUnknownLogin).
		DeveloperMessage(); !strings.Contains(text, "does not match a known resource") {
		t.Errorf("the developer reads %q", text)
	}
}
