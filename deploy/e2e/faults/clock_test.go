package faults

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"testing"
	"time"
)

// TestMain lets this program be the process whose clock jumps: it prints its time
// for each line it reads.
func TestMain(m *testing.M) {
	if os.Getenv("FAULTS_CLOCK") == "" {
		os.Exit(m.Run())
	}
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		fmt.Println(time.Now().Unix())
	}
}

func TestTheClockOfOneProcessJumps(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		return // the means are of this system alone
	}
	process := exec.CommandContext(t.Context(), os.Args[0])
	process.Env = append(os.Environ(), "FAULTS_CLOCK=yes")
	in, err := process.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := process.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	clock := func() time.Time {
		t.Helper()
		if _, err := fmt.Fprintln(in); err != nil {
			t.Fatal(err)
		}
		var seconds int64
		if _, err := fmt.Fscan(out, &seconds); err != nil {
			t.Fatal(err)
		}
		return time.Unix(seconds, 0)
	}
	clock() // the process has started
	for _, by := range []time.Duration{0, 10 * time.Minute, -10 * time.Minute, 0} {
		if err := setClock(process.Process.Pid, by); err != nil {
			t.Fatal(err)
		}
		if off := time.Until(clock()) - by; off.Abs() > 2*time.Minute {
			t.Errorf("a jump of %s shows a clock that is off by %s more", by, off)
		}
	}
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	if err := process.Wait(); err != nil {
		t.Error(err)
	}
}
