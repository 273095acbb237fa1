package deployment

import (
	"strings"
	"testing"
)

func TestTheDomainOfClientAPIs(t *testing.T) {
	for _, good := range []string{"apps.localhost", "localhost", "a.b-c.example.test", "1.example", strings.Repeat("a", maxDomain)} {
		if got, err := (ClientAPI{Suffix: good}).Open(); err != nil || got != good {
			t.Errorf("%q became %q, %v", good, got, err)
		}
	}
	for _, bad := range []string{"", ".", ".apps", "apps.", "Apps", "a_b", "-a", "a-", "https://apps", "apps:8443", "a..b", "a b", strings.Repeat("a", maxDomain+1)} {
		if _, err := (ClientAPI{Suffix: bad}).Open(); err == nil || !strings.Contains(err.Error(), "DOORWARD_CLIENT_API_SUFFIX") {
			t.Errorf("%q returned %v", bad, err)
		}
	}
}
