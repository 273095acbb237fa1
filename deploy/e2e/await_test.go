package e2e_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/doorward/doorward/deploy/e2e"
)

// awaitTrue waits until probe returns true, because a change in one process reaches the
// others a moment later.
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
