package faults

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"

	"github.com/doorward/doorward/deploy/e2e/harness"
)

// diskSize is the size of the file system of mountDisk.
const diskSize = "2g"

// mountDisk mounts a file system in memory on a folder, which only root may do.
func mountDisk(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return command("mount", "-t", "tmpfs", "-o", "size="+diskSize+",mode=755", "doorward-faults", dir)
}

func unmountDisk(dir string) error { return command("umount", "--lazy", dir) }

// fillDisk shrinks the file system to the size of its content; emptyDisk makes it diskSize again.
func fillDisk(dir string) (err error) {
	for range 100 { // the content grows meanwhile
		var stat syscall.Statfs_t
		if err = syscall.Statfs(dir, &stat); err != nil {
			return err
		}
		used := (stat.Blocks - stat.Bfree) * uint64(stat.Bsize)
		if err = command("mount", "-o", "remount,size="+strconv.FormatUint(used+64<<10, 10), dir); err == nil {
			return nil
		}
	}
	return err
}

func emptyDisk(dir string) error { return command("mount", "-o", "remount,size="+diskSize, dir) }

func command(name string, args ...string) error {
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s %v: %w\n%s", name, args, err, out)
	}
	return nil
}

// oomKills is how many processes of a control group the kernel has killed for their memory (OOM).
func oomKills(group harness.ControlGroup) (kills int) {
	for _, file := range []string{"memory.oom_control", "memory.events"} { // of version 1 and 2
		raw, _ := os.ReadFile(group.Path(file))
		for line := range strings.Lines(string(raw)) {
			if number, ok := strings.CutPrefix(line, "oom_kill "); ok {
				kills, _ = strconv.Atoi(strings.TrimSpace(number))
			}
		}
	}
	return kills
}
