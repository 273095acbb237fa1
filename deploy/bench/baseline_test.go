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

	"github.com/doorward/doorward/deploy/e2e"
	"github.com/doorward/doorward/deploy/e2e/harness"
)

// TestMain makes the test's own binary the baseline when it is asked to be, as
// the program itself does.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == baselineCommand {
		main()
		return
	}
	os.Exit(m.Run())
}

func TestTheBaselineIsMeasuredAndStops(t *testing.T) {
	r := &run{dir: harness.TestFolder(t), options: options{accounts: 50}}
	err := r.startBaseline(t.Context())
	t.Cleanup(func() {
		for _, end := range r.ends {
			if err := end(context.WithoutCancel(t.Context())); err != nil {
				t.Error(err)
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	l := load{connections: 2, warm: 50 * time.Millisecond, length: 250 * time.Millisecond}
	for _, operation := range bareOperations {
		if operation.name == "hash" {
			l.length = 2 * time.Second
		}
		o := l.run(t.Context(), r.baseline, operation.do)
		if o.done() == 0 || len(o.failures) > 0 {
			t.Errorf("%s: %d answers, failures %v: %v", operation.name, o.done(), o.failures, o.example)
		}
		if _, postgres := o.usage.servers["postgres"]; runtime.GOOS == "linux" && (o.usage.machine == 0 || !postgres) {
			t.Errorf("%s: the processes used no processor: %+v", operation.name, o.usage)
		}
	}
	if mib, err := memory(r.baseline.roots); runtime.GOOS == "linux" && (err != nil || mib < 10) {
		t.Errorf("%g MiB: %v", mib, err)
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
	dir := t.TempDir()
	if err := group.wrap("/bin/sleep", dir); err != nil {
		t.Fatal(err)
	}
	sleeper := exec.CommandContext(t.Context(), filepath.Join(dir, "sleep"), "60")
	if err := sleeper.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = sleeper.Process.Kill()
		_ = sleeper.Wait()
	}()
	err = e2e.AwaitFor(t.Context(), time.Minute, "the process to be in the group", func(context.Context) error {
		raw, err := os.ReadFile(filepath.Join(string(group), "cgroup.procs"))
		members, want := strings.Fields(string(raw)), []string{fmt.Sprint(sleeper.Process.Pid)}
		if err == nil && !slices.Equal(members, want) {
			err = fmt.Errorf("in the group are %v, want %s", members, want)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
