package alias_test

import (
	"testing"

	"github.com/doorward/doorward/pkg/alias"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]alias.Alias{"service": "service", "Acme": "acme", "": "", "a-b": "", "a1": "", "é": ""} {
		if got, err := alias.Parse(text); got != want || (err == nil) != (want != "") {
			t.Errorf("%q is %q, %v", text, got, err)
		}
	}
}

func TestANameHasTwoSpellings(t *testing.T) {
	const acme alias.Alias = "acme"
	for neutral, want := range map[string]string{
		"x-service-date": "x-acme-date", "service_access_token_href": "acme_access_token_href", "urn:service:directory:": "urn:acme:directory:", "native": "native",
	} {
		if got := acme.Spell(neutral); got != want {
			t.Errorf("%q is spelled %q, want %q", neutral, got, want)
		}
	}
	for text, want := range map[string]string{
		"acme_client": "service_client", "service_client": "service_client", "password": "password", "xacme_client": "xacme_client",
	} {
		if got := acme.Neutral(text, "service_"); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
	if got := acme.Title(); got != "Acme" {
		t.Errorf("as a name it is %q", got)
	}
}
