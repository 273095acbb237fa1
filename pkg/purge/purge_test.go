package purge_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/purge"
)

func TestAPurgeThatFailsIsMadeUpForByTheNext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	times := 0
	err := purge.Every(time.Millisecond, "it failed", func(context.Context) error {
		if times++; times == 3 {
			cancel()
		}
		return errors.New("away")
	})(ctx)
	if err != nil || times != 3 {
		t.Errorf("it purged %d times, %v", times, err)
	}
}

func TestDrain(t *testing.T) {
	away := errors.New("away")
	for _, c := range []struct {
		found  []int64 // by each transaction; -1 fails
		failed bool
	}{
		{[]int64{0}, false},
		{[]int64{5, 5, 2, 0}, false},
		{[]int64{5, -1}, true},
	} {
		var done []int64
		inTx := func(_ context.Context, fn func(string) error) error { return fn("tx") }
		err := purge.Drain(t.Context(), inTx, func(tx string) (int64, error) {
			n := c.found[len(done)]
			done = append(done, n)
			if n < 0 || tx != "tx" {
				return 0, away
			}
			return n, nil
		})
		if errors.Is(err, away) != c.failed || !slices.Equal(done, c.found) {
			t.Errorf("of %v it took %d transactions, %v", c.found, len(done), err)
		}
	}
}
