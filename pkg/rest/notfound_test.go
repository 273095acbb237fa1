package rest_test

import (
	"testing"

	"github.com/doorward/doorward/pkg/rest"
)

func TestKindsOfCollections(t *testing.T) {
	t.Parallel()
	for collection, want := range map[string]string{
		"accounts": "account", "directories": "directory", "accountCreationPolicies": "account creation policy", "apiKeys": "API key",
		"idSites": "ID site", "smtpServers": "SMTP server", "oAuthPolicies": "OAuth policy", "samlPolicies": "SAML policy",
		"x509certificates": "X.509 certificate", "groupMemberships": "group membership",
	} {
		if got := rest.Kind(collection); got != want {
			t.Errorf("Kind(%q) = %q, want %q", collection, got, want)
		}
	}
}
