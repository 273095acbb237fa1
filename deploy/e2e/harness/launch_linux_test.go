package harness

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/doorward/doorward/deploy/e2e"
)

// parentEnv makes the test binary a parent that starts one daemon, prints its
// process id, and waits to be killed.
const parentEnv = "HARNESS_TEST_PARENT_IN"

func TestMain(m *testing.M) {
	if dir := os.Getenv(parentEnv); dir != "" {
		beParent(Config{Dir: dir})
		return
	}
	os.Exit(m.Run())
}

func beParent(config Config) {
	child := &Daemon{
		Name: "child", path: "/bin/sleep", args: []string{"600"},
		log:   config.path("child.log"),
		ready: func(context.Context) error { return nil },
	}
	if err := child.Start(context.Background()); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(child.PID())
	select {}
}

func TestChildrenDieWithAParentThatIsKilled(t *testing.T) {
	parent := exec.CommandContext(t.Context(), os.Args[0])
	parent.Env = append(os.Environ(), parentEnv+"="+TestFolder(t))
	parent.Stderr = os.Stderr
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	child, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait() // it was killed
	err = e2e.AwaitFor(t.Context(), 10*time.Second, "the child to die", func(context.Context) error {
		if err := syscall.Kill(child, 0); errors.Is(err, syscall.ESRCH) || isZombie(child) {
			return nil
		}
		return fmt.Errorf("process %d lives", child)
	})
	if err != nil {
		t.Error(err)
	}
}

// isZombie reports whether the process has ended and only waits to be reaped by
// the process that inherited it.
func isZombie(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && strings.Contains(string(stat), ") Z ")
}
