package href

import "testing"

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
