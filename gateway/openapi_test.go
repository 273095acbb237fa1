package gateway

import (
	"net/http"
	"strings"
	"testing"
)

func TestTheReferenceIsServed(t *testing.T) {
	s := openGateway(t)
	for path, want := range map[string]string{
		"/openapi.json": `"openapi":"3.1.0"`, "/openapi.yaml": "openapi: 3.1.0", "/docs": "Doorward reference", "/docs/": "Doorward reference",
		"/docs/accounts": `<section id="getAccount">`, "/docs/docs.css": "color-scheme", "/docs/docs.js": "search",
	} {
		a := s.get(t, path)
		if a.status != http.StatusOK || !strings.Contains(string(a.body), want) {
			t.Errorf("%s answers %d without %q", path, a.status, want)
		}
		if policy := a.header.Get("Content-Security-Policy"); !strings.Contains(policy, "default-src 'none'") || strings.Contains(policy, "unsafe") {
			t.Errorf("%s has the policy %q", path, policy)
		}
	}
	if a := s.get(t, "/docs/nothing"); a.status != http.StatusNotFound {
		t.Errorf("an unknown page answers %d", a.status)
	}
}
