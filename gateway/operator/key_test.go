package operator

import (
	"strings"
	"testing"

	"github.com/doorward/doorward/pkg/secure"
)

// A key has a name, a role and a long secret. An error about one does not show its secret.
func TestTheKeysOfOperators(t *testing.T) {
	t.Parallel()
	secret := strings.Repeat("s:", 16)
	keys, err := ParseKeys(secure.Secret("  jo:admin:" + secret + "\n ci:lookup:" + strings.Repeat("c", 32)))
	if err != nil || len(keys) != 2 || keys[0].name != "jo" || keys[0].role != admin || keys[1].role != lookup {
		t.Fatalf("two keys are read as %d, %v", len(keys), err)
	}
	for _, c := range []struct {
		name, secret string
		found        bool
	}{{"jo", secret, true}, {"jo", secret + "s", false}, {"ci", secret, false}, {"", "", false}, {"jo", "", false}} {
		if k, ok := find(keys, c.name, c.secret); ok != c.found || ok && k.name != c.name {
			t.Errorf("the key of %q is found: %v, want %v", c.name, ok, c.found)
		}
	}
	for wrong, told := range map[string]string{
		"":                      "at least one key",
		"jo:" + secret:          "the role of jo",
		"jo":                    "name:role:secret",
		":admin:" + secret:      "name:role:secret",
		"jo:root:" + secret:     "the role of jo",
		"jo:read:" + secret[1:]: "fewer than 32",
		"jo:read:" + secret + " jo:read:" + secret: "two keys",
	} {
		_, err := ParseKeys(secure.Secret(wrong))
		if err == nil || !strings.Contains(err.Error(), told) || strings.Contains(err.Error(), secret[1:]) {
			t.Errorf("the keys %q are refused with %v, want %q", wrong, err, told)
		}
	}
}
