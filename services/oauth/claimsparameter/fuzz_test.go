package claimsparameter

import (
	"strings"
	"testing"

	"github.com/doorward/doorward/pkg/apierr"
)

// FuzzClaimsParameter checks that the parameter claims is refused as such, or names claims that are read as they were
// written.
func FuzzClaimsParameter(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"userinfo":{"email":null}}`, `{"id_token":{"acr":{"essential":true,"values":["a",1,{}]}}}`, `[]`, `{} {}`,
		`{"id_token":{"sub":{"value":"x"}},"userinfo":{"":null}}`, `{"userinfo":{"a\u0000":null}}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		in, err := Parse(text)
		if err != nil {
			if apierr.From(err).Fields["error"] != "invalid_request" {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		for _, value := range append(in.IDToken["acr"].Texts(), in.IDToken["sub"].Texts()...) {
			if value == "" || strings.ContainsAny(value, " \x00\n") {
				t.Fatalf("%q has the value %q", text, value)
			}
		}
		again, err := Parse(string(in.Names()))
		if err != nil || len(again.IDToken) != len(in.IDToken) || len(again.UserInfo) != len(in.UserInfo) {
			t.Fatalf("%q is read as %s, %v", text, in.Names(), err)
		}
	})
}
