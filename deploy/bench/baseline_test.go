package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/doorward/doorward/deploy/e2e/harness"
)

// TestMain makes the test's own binary the baseline when it is asked to be, as
// the program itself does.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == baselineCommand {
		if err := start(context.Background(), os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func TestTheBaselineIsMeasuredAndEndsWithItsInput(t *testing.T) {
	dir, remove, err := harness.Folder()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := remove(); err != nil {
			t.Error(err)
		}
	})
	y, err := startYardstick(t.Context(), dir, 50)
	if err != nil {
		t.Fatal(err)
	}
	l := load{connections: 2, warm: 50 * time.Millisecond, duration: 250 * time.Millisecond, meter: y.meter}
	for _, subject := range []subject{y.bare(), y.row(), y.follow(), y.insert(), y.pair()} {
		o, err := l.closed(t.Context(), subject)
		if err != nil {
			t.Fatal(err)
		}
		if o.done() == 0 || len(o.failures) > 0 {
			t.Errorf("%s: %d answers, failures %v: %v", subject.name, o.done(), o.failures, o.example)
		}
		if shares := o.usage.shares(); runtime.GOOS == "linux" && shares.Generator == 0 {
			t.Errorf("%s: the generator used no processor: %+v", subject.name, shares)
		}
	}
	if rate, _, err := y.hashes(100 * time.Millisecond); err != nil || rate.Count == 0 || rate.PerSecond <= 0 {
		t.Errorf("%+v: %v", rate, err)
	}
	if _, _, err := memory(y.meter.pid); runtime.GOOS == "linux" && err != nil {
		t.Error(err)
	}
	if err := y.stop(); err != nil {
		t.Error(err)
	}
}
