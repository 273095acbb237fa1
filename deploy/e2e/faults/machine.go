package faults

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// diskSize is the size of a disk that can be filled.
const diskSize = "2g"

// mountDisk mounts a file system in memory on a folder, which only root may do.
func mountDisk(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return command("mount", "-t", "tmpfs", "-o", "size="+diskSize+",mode=755", "doorward-faults", dir)
}

func unmountDisk(dir string) error { return command("umount", "--lazy", dir) }

// fillDisk makes the file system as small as what it holds; emptyDisk undoes that.
func fillDisk(dir string) (err error) {
	for range 100 { // what it holds grows meanwhile
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

// memory is a control group whose processes are killed by the kernel when they
// need more memory than it allows.
type memory struct{ dir, limit, events string }

// newMemory makes the group, of either version of control groups; only root may.
func newMemory() (*memory, error) {
	name := "doorward-faults-" + strconv.Itoa(os.Getpid())
	m := &memory{dir: filepath.Join("/sys/fs/cgroup/memory", name), limit: "memory.limit_in_bytes", events: "memory.oom_control"}
	if _, err := os.Stat("/sys/fs/cgroup/cgroup.controllers"); err == nil {
		m = &memory{dir: filepath.Join("/sys/fs/cgroup", name), limit: "memory.max", events: "memory.events"}
	}
	if err := os.Mkdir(m.dir, 0o755); err != nil {
		return nil, err
	}
	_, err := os.Stat(filepath.Join(m.dir, m.limit))
	if err != nil {
		return nil, errors.Join(err, m.remove())
	}
	return m, nil
}

func (m *memory) allow(bytes int) error {
	return os.WriteFile(filepath.Join(m.dir, m.limit), []byte(strconv.Itoa(bytes)), 0)
}

// wrapper is the command that runs another in the group.
func (m *memory) wrapper() []string {
	return []string{"/bin/sh", "-c", `echo $$ > "$0" && exec "$@"`, filepath.Join(m.dir, "cgroup.procs")}
}

// kills is how many processes the kernel has killed in the group.
func (m *memory) kills() int {
	raw, err := os.ReadFile(filepath.Join(m.dir, m.events))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(raw)) {
		if number, ok := strings.CutPrefix(line, "oom_kill "); ok {
			kills, _ := strconv.Atoi(strings.TrimSpace(number))
			return kills
		}
	}
	return 0
}

func (m *memory) remove() error { return os.Remove(m.dir) }
