package mfa_test

import (
	"errors"
	"regexp"
	"testing"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/services/mfa"
)

func TestNumbersAreNormalised(t *testing.T) {
	for text, want := range map[string]string{
		"888 391 5282": "+18883915282", "1 (888) 391-5282": "+18883915282", "+1.888.391.5282": "+18883915282",
		"８８８３９１５２８２":        "+18883915282",
		" +44 7400 123456 ": "+447400123456", "+39 06 698 57 700": "+390669857700", "011 44 7400 123456": "+447400123456",
	} {
		if got, err := mfa.ReadNumber(field.Some(text)); err != nil || got != want {
			t.Errorf("%q is %q, %v; want %q", text, got, err, want)
		}
	}
}

var e164 = regexp.MustCompile(`^\+[1-9]\d{3,14}$`)

func FuzzNumber(f *testing.F) {
	for _, text := range []string{"888 391 5282", "+447400123456", "tel:+1-888-391-5282;ext=3", "1-800-FLOWERS", "+",
		"++1", "\u202a+18883915282"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		number, err := mfa.ReadNumber(field.Some(text))
		if err != nil {
			if apierr.From(err).Status >= 500 {
				t.Fatalf("%q fails with %v", text, err)
			}
			return
		}
		if !e164.MatchString(number) {
			t.Fatalf("%q is %q, which is not E.164", text, number)
		}
		if again, err := mfa.ReadNumber(field.Some(number)); again != number && !errors.Is(err, apierr.PhoneNumberInvalid) {
			t.Fatalf("%q is %q, and that %q, %v", text, number, again, err)
		}
	})
}
