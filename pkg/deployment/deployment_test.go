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
