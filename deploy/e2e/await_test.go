package e2e_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/doorward/doorward/deploy/e2e"
)

// awaitTrue waits until something is so: what one process changes the others learn
// within moments.
func awaitTrue(t *testing.T, what string, probe func() bool) {
	t.Helper()
	err := e2e.AwaitFor(t.Context(), 30*time.Second, what, func(context.Context) error {
		if !probe() {
			return errors.New("not yet")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
