package deployment

import (
	"strings"
	"testing"

	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/secure"
)

// In each step of docs/operations.md#rotation-of-the-internal-secret the processes that
// have done it and those that have not understand each other.
func TestTheInternalSecretIsRotatedOneProcessAfterAnother(t *testing.T) {
	t.Parallel()
	first, second := secure.Secret(strings.Repeat("a", 32)), secure.Secret(strings.Repeat("b", 32))
	open := func(secret, accepted secure.Secret) Common {
		common, err := Config{BaseURL: "https://localhost/v1", Alias: "service", InternalSecret: secret, AcceptedSecret: accepted}.Validate()
		if err != nil {
			t.Fatal(err)
		}
		return common
	}
	steps := []Common{open(first, ""), open(first, second), open(second, first), open(second, "")}
	for i := range steps {
		for j := range steps {
			from, to := steps[i], steps[j]
			_, called := to.Signer.Verify([]byte(from.Signer.Sign(caller.Caller{RequestID: "r"})))
			opened, unsealed := to.Shared.Open(from.Shared.Seal("hunter2", "purpose"), "purpose")
			apart := max(i, j) - min(i, j)
			if apart <= 1 && (called != nil || unsealed != nil || opened != "hunter2") {
				t.Errorf("step %d is not understood in step %d: %v, %v", i, j, called, unsealed)
			}
			if apart == 3 && (called == nil || unsealed == nil) {
				t.Errorf("step %d is understood in step %d", i, j)
			}
		}
	}
	for _, short := range []Config{{InternalSecret: "short"}, {InternalSecret: first, AcceptedSecret: "short"}} {
		short.BaseURL, short.Alias = "https://localhost/v1", "service"
		if _, err := short.Validate(); err == nil || !strings.Contains(err.Error(), "32 characters") {
			t.Errorf("a short secret is reported as %v", err)
		}
	}
}

func TestFormerBaseURLsHaveTheFormOfABaseURL(t *testing.T) {
	t.Parallel()
	open := func(former ...string) (Common, error) {
		return Config{BaseURL: "https://localhost/v1/", FormerBaseURLs: former, Alias: "service",
			InternalSecret: secure.Secret(strings.Repeat("a", 32))}.Validate()
	}
	common, err := open("https://id.example.test/v1/", "https://old.example.test:8443/v1")
	if err != nil || common.Base.Host() != "https://localhost" {
		t.Fatalf("two former addresses: the host is %q, %v", common.Base.Host(), err)
	}
	if _, ok := common.Base.Last("apiKeys", "https://id.example.test/v1/apiKeys/K1"); !ok {
		t.Error("an address below a former base URL is refused")
	}
	for _, bad := range []string{"http://id.example.test/v1", "https://id.example.test", "https:///v1", "https://id.example.test/v1?a", "",
		"https://id.example.test/v1 https://evil.test/v1", "https://jo@id.example.test/v1"} {
		if _, err := open(bad); err == nil || !strings.Contains(err.Error(), "DOORWARD_FORMER_BASE_URLS") {
			t.Errorf("the former base URL %q is reported as %v", bad, err)
		}
	}
}
