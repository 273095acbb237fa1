package rest

import (
	"errors"
	"net/url"
	"strings"
	"testing"

	"github.com/doorward/doorward/pkg/apierr"
)

func TestParseForm(t *testing.T) {
	fields, err := parseForm("grant_type=password&username=jo%40example.test&password=a+b%2B%26%C3%A9&empty=&scope=x&flag")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"grant_type": "password", "username": "jo@example.test", "password": "a b+&é", "scope": "x"} {
		if got := fields[name].Reveal(); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if len(fields) != 4 {
		t.Errorf("a field without a value counts as absent: %d fields", len(fields))
	}
	for body, want := range map[string]error{
		"a=1&a=2":                           apierr.ParameterRepeated,
		"a=&a=":                             apierr.ParameterRepeated,
		"a=%zz":                             apierr.Format,
		"a=1;b=2":                           apierr.Format,
		"a=%00":                             apierr.Format,
		"a=%ff":                             apierr.Encoding,
		"a=%ed%a0%80":                       apierr.Encoding,
		`{"grant_type":`:                    nil, // a field of a strange name
		"a=" + strings.Repeat("x", maxForm): apierr.TooLarge,
	} {
		_, err := parseForm(body)
		if !errors.Is(err, want) {
			t.Errorf("%.20q returns %v, want %v", body, err, want)
		}
		if err != nil && !errors.Is(err, apierr.TooLarge) && apierr.From(err).Fields["error"] != "invalid_request" {
			t.Errorf("%.20q has the error %v", body, apierr.From(err).Fields)
		}
	}
}

// FuzzParseForm checks that the parser never panics, refuses with an error of the catalogue, and
// returns the values that were sent.
func FuzzParseForm(f *testing.F) {
	for _, seed := range []string{"", "grant_type=password&username=jo&password=x", "a=1&a=2", "a=%00", "a=%ff", "&&==;", "%61=1&a=2",
		strings.Repeat("a&", 100)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, body string) {
		fields, err := parseForm(body)
		if err != nil {
			if status := apierr.From(err).Status; status != 400 && status != 413 {
				t.Fatalf("%q: %v", body, err)
			}
			return
		}
		values, err := url.ParseQuery(body)
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range fields {
			if value == "" || values.Get(name) != value.Reveal() {
				t.Fatalf("%q: %q is %q", body, name, value.Reveal())
			}
		}
	})
}
