package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
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
	b, err := startBaseline(t.Context(), filepath.Join(dir, "postgres"), 50)
	if err != nil {
		t.Fatal(err)
	}
	l := load{connections: 2, warm: 50 * time.Millisecond, length: 2 * time.Second, sleep: sleep}
	for _, operation := range bareOperations {
		o, err := l.run(t.Context(), b.subject(operation.name))
		if err != nil {
			t.Fatal(err)
		}
		if o.done() == 0 || len(o.failures) > 0 {
			t.Errorf("%s: %d answers, failures %v: %v", operation.name, o.done(), o.failures, o.example)
		}
		if runtime.GOOS == "linux" && o.usage.machine == 0 {
			t.Errorf("%s: the machine used no processor: %+v", operation.name, o.usage)
		}
	}
	if o, err := b.hashes(100 * time.Millisecond); err != nil || o.done() == 0 || o.perSecond() <= 0 {
		t.Errorf("%+v: %v", o, err)
	}
	if mib, err := memory(b.daemon.Process.Pid); runtime.GOOS == "linux" && (err != nil || mib < 10) {
		t.Errorf("%g MiB: %v", mib, err)
	}
	if err := b.stop(); err != nil {
		t.Error(err)
	}
}

func TestAControlGroupHoldsWhatIsStartedInIt(t *testing.T) {
	group, err := newCPUGroup()
	if err != nil {
		t.Logf("control groups cannot be written here: %v", err)
		return
	}
	t.Cleanup(func() {
		if err := group.remove(); err != nil {
			t.Error(err)
		}
	})
	members := func() []string {
		raw, err := os.ReadFile(filepath.Join(group.dir, "cgroup.procs"))
		if err != nil {
			t.Fatal(err)
		}
		return strings.Fields(string(raw))
	}
	sleeper := exec.CommandContext(t.Context(), "sleep", "60")
	if err := group.start(sleeper.Start); err != nil {
		t.Fatal(err)
	}
	if got, want := members(), []string{fmt.Sprint(sleeper.Process.Pid)}; !slices.Equal(got, want) {
		t.Errorf("in the group are %v, want %v", got, want)
	}
	_ = sleeper.Process.Kill()
	_ = sleeper.Wait()
}
