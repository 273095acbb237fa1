package href

import (
	"testing"

	"github.com/doorward/doorward/pkg/id"
)

func TestLastReadsNamesThatAreNoIDs(t *testing.T) {
	const base Base = "https://id.example.test/v1"
	for href, want := range map[string]string{
		"https://id.example.test/v1/apiKeys/K1":      "K1",
		"https://id.example.test/v1/apiKeys/K1/":     "K1",
		"https://id.example.test/v1/apiKeys/":        "",
		"https://id.example.test/v1/apiKeys":         "",
		"https://id.example.test/v1/apiKeys//":       "",
		"https://id.example.test/v1/apiKeys/K1/a":    "",
		"https://id.example.test/v1/apiKeys/../K1":   "",
		"https://id.example.test/v1/accounts/K1":     "",
		"https://elsewhere.example/v1/apiKeys/K1":    "",
		"https://id.example.test/v1.evil/apiKeys/K1": "",
		"http://id.example.test/v1/apiKeys/K1":       "",
		"/apiKeys/K1":                                "",
		"https://id.example.test/v1/apiKeys/K1?x=y":  "K1?x=y",
		"": "",
	} {
		if got, ok := base.Last("apiKeys", href); ok != (want != "") || ok && got != want {
			t.Errorf("Last(%q) = %q, %v; want %q", href, got, ok, want)
		}
	}
}

func TestAnAddressIsComparedAsTheStandardSays(t *testing.T) {
	account, err := id.Parse("5ZxK2m5ZxK2m5ZxK2m5ZxK")
	if err != nil {
		t.Fatal(err)
	}
	path := "/accounts/" + account.String()
	base := NewBase("https://id.example.test/v1", "https://Old.example.test:8443/v1", "https://older.example.test:443/v1")
	for _, same := range []string{
		"https://id.example.test/v1", "HTTPS://ID.Example.TEST/v1", "https://id.example.test:443/v1", "https://id.example.test:/v1",
		"https://old.example.test:8443/v1", "https://OLD.example.test:8443/v1", "https://older.example.test/v1",
	} {
		if !base.Is(same+path, "accounts", account) {
			t.Errorf("%s is not an address of the deployment", same)
		}
		if key, ok := base.Last("apiKeys", same+"/apiKeys/K1"); !ok || key != "K1" {
			t.Errorf("the API key below %s is %q, %v", same, key, ok)
		}
	}
	for _, other := range []string{
		"https://id.example.test:444/v1", "http://id.example.test/v1", "https://id.example.test/V1", "https://old.example.test/v1",
		"https://jo@id.example.test/v1", "https://id.example.test.evil.test/v1", "https://id.example.test/v1 https://old.example.test:8443/v1",
		"//id.example.test/v1", "https:id.example.test/v1", "https://id.example.test:443:443/v1", "http://id.example.test:443/v1", "",
	} {
		if base.Is(other+path, "accounts", account) {
			t.Errorf("%s is an address of the deployment", other)
		}
	}
	if base.Is("https://id.example.test/v1"+path, "applications", account) {
		t.Error("the address of an account is one of an application")
	}
	if got := base.To("accounts", account); got != "https://id.example.test/v1"+path {
		t.Errorf("a link is %s, want one with the current address", got)
	}
	if got := base.Host() + " " + base.Hostname() + " " + base.Path("tenants", "current"); got !=
		"https://id.example.test id.example.test https://id.example.test/v1/tenants/current" {
		t.Errorf("the current address is used as %s", got)
	}
}
