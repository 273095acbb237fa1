package purge_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/doorward/doorward/pkg/purge"
	"github.com/doorward/doorward/pkg/telemetry/metrictest"
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
		t.Errorf("the worker purged %d times, %v", times, err)
	}
}

// age returns the value of doorward_purge_age_seconds.
func age(t *testing.T) time.Duration {
	t.Helper()
	found, err := metrictest.Find(t.Context(), "doorward_purge_age_seconds")
	if err != nil {
		t.Fatal(err)
	}
	if len(found) == 0 {
		return 0
	}
	return time.Duration(found[0].Data.(metricdata.Gauge[float64]).DataPoints[0].Value * float64(time.Second))
}

func TestTheAgeIsThatOfThePurges(t *testing.T) {
	away := func(context.Context) error { return errors.New("away") }
	done := func(context.Context) error { return nil }
	for name, c := range map[string]struct {
		worker func(context.Context) error
		least  time.Duration
		most   time.Duration
	}{
		"a purge":               {purge.Every(time.Hour, "it failed", done), 0, 90 * time.Minute},
		"a purge that fails":    {purge.Every(time.Hour, "it failed", away), 20 * time.Hour, 20 * time.Hour},
		"other work":            {purge.Periodically(48*time.Hour, "it failed", done), 0, 0},
		"other work that fails": {purge.Periodically(time.Hour, "it failed", away), 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				go func() { _ = c.worker(t.Context()) }()
				<-time.After(20 * time.Hour)
				if found := age(t); found < c.least || found > c.most {
					t.Errorf("after 20 hours the age is %s, want %s to %s", found, c.least, c.most)
				}
			})
		})
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
