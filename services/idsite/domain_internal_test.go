package idsite

import "testing"

func TestTheDomainsOfTheDeploymentAreNoTenants(t *testing.T) {
	c := Config{Base: "https://auth.example.com/v1", ClientSuffix: "apps.example.com", Suffix: "example.com"}
	for domain, want := range map[string]bool{
		"auth.example.com": true, "example.com": true, "com": true, "x.auth.example.com": true,
		"apps.example.com": true, "calm-otter.apps.example.com": true, "id.example.com": true, "joyful-peak.id.example.com": true,
		"login.example.com": false, "myauth.example.com": false, "otherapps.example.com": false, "login.shop.test": false,
	} {
		if got := c.isDeploymentDomain(domain); got != want {
			t.Errorf("%s: %v", domain, got)
		}
	}
	if local := (Config{Base: "https://localhost:8443/v1", ClientSuffix: "apps.localhost", Suffix: "localhost"}); local.isDeploymentDomain("login.localhost") {
		t.Error("a developer has no domain below localhost")
	}
}
