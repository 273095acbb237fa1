package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// tick is the unit of processor time under /proc, on every Linux in use.
const tick = 10 * time.Millisecond

// usage is processor time: of a process with its children, of this process, and
// of the whole machine.
type usage struct {
	server, generator, machine time.Duration
	at                         time.Time
	took                       time.Duration // of a difference
}

func (u usage) minus(before usage) usage {
	return usage{u.server - before.server, u.generator - before.generator, u.machine - before.machine, u.at, u.at.Sub(before.at)}
}

func (u usage) plus(other usage) usage {
	return usage{u.server + other.server, u.generator + other.generator, u.machine + other.machine, u.at, u.took + other.took}
}

// percent of all processors.
func (u usage) percent(of time.Duration) float64 {
	if u.took == 0 {
		return 0
	}
	return 100 * max(0, of.Seconds()) / (u.took.Seconds() * float64(runtime.NumCPU()))
}

// usedBetween waits for the end of a time and returns what was used in it.
func usedBetween(ctx context.Context, pid int, from, until time.Time) (usage, error) {
	if err := await(ctx, from); err != nil {
		return usage{}, err
	}
	before, err := readUsage(pid)
	if err != nil {
		return usage{}, err
	}
	if err := await(ctx, until); err != nil {
		return usage{}, err
	}
	after, err := readUsage(pid)
	return after.minus(before), err
}

func await(ctx context.Context, moment time.Time) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(time.Until(moment)):
		return nil
	}
}

// readUsage returns zeros where there is no /proc, and for pid 0 nothing of a
// server.
func readUsage(pid int) (usage, error) {
	u := usage{at: time.Now()}
	if runtime.GOOS != "linux" {
		return u, nil
	}
	raw, err := os.ReadFile("/proc/stat")
	if err != nil {
		return u, fmt.Errorf("read the machine's processor time: %w", err)
	}
	line, _, _ := strings.Cut(string(raw), "\n")
	fields := strings.Fields(line) // cpu user nice system idle iowait irq softirq steal …
	if len(fields) < 9 {
		return u, fmt.Errorf("read the machine's processor time: %q", line)
	}
	for _, n := range []int{1, 2, 3, 6, 7, 8} {
		u.machine += ticks(fields[n])
	}
	all, err := processes()
	if err != nil {
		return u, err
	}
	if _, running := all[pid]; pid != 0 && !running {
		return u, fmt.Errorf("process %d, which is measured, has ended", pid)
	}
	u.generator = all[os.Getpid()].used
	for _, member := range all.tree(pid) {
		u.server += all[member].used + all[member].ended
	}
	return u, nil
}

func ticks(field string) time.Duration {
	n, _ := strconv.ParseInt(field, 10, 64) // the kernel writes numbers
	return time.Duration(n) * tick
}

// process is one of the machine, with its processor time and that of its
// children that have ended.
type process struct {
	parent      int
	name        string
	used, ended time.Duration
}

type processTable map[int]process

// processes leaves out what ends while it is read.
func processes() (processTable, error) {
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil, fmt.Errorf("list the processes: %w", err)
	}
	all := processTable{}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		text := string(raw) // pid (name) state parent …; a name may hold anything
		open, end := strings.IndexByte(text, '('), strings.LastIndexByte(text, ')')
		if open < 0 || end < open {
			continue
		}
		fields := strings.Fields(text[end+1:])
		if len(fields) < 15 {
			continue
		}
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		parent, _ := strconv.Atoi(fields[1])
		all[pid] = process{parent, text[open+1 : end], ticks(fields[11]) + ticks(fields[12]), ticks(fields[13]) + ticks(fields[14])}
	}
	return all, nil
}

// tree is a process and all below it; nothing for a process that is not there.
func (t processTable) tree(pid int) []int {
	if _, running := t[pid]; !running || pid == 0 {
		return nil
	}
	members := []int{pid}
	for i := 0; i < len(members); i++ {
		for child, p := range t {
			if p.parent == members[i] {
				members = append(members, child)
			}
		}
	}
	return members
}

// child finds the child of this process that runs a program; 0 where there is
// no /proc.
func child(program string) (int, error) {
	if runtime.GOOS != "linux" {
		return 0, nil
	}
	all, err := processes()
	if err != nil {
		return 0, err
	}
	for pid, p := range all {
		if p.parent == os.Getpid() && p.name == program {
			return pid, nil
		}
	}
	return 0, fmt.Errorf("found no child process that runs %s", program)
}

// memory is the memory of a process and its children in MiB, where a page that
// several share is divided among them (PSS).
func memory(pid int) (float64, error) {
	all, err := processes()
	if err != nil {
		return 0, err
	}
	members := all.tree(pid)
	if len(members) == 0 {
		return 0, errors.New("this system has no /proc")
	}
	total := 0
	for _, member := range members {
		raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", member))
		if errors.Is(err, os.ErrNotExist) || err == nil && len(raw) == 0 {
			continue // it has ended
		}
		if err != nil {
			return 0, fmt.Errorf("read the memory of a process: %w", err)
		}
		_, rest, _ := strings.Cut(string(raw), "\nPss:")
		if fields := strings.Fields(rest); len(fields) > 0 {
			kib, _ := strconv.Atoi(fields[0]) // the kernel writes numbers
			total += kib
		}
	}
	return float64(total) / 1024, nil
}

// cpuGroup is a control group with a quota of one processor.
type cpuGroup struct{ dir, parent string }

// newCPUGroup makes one below the group of this process or, where that cannot
// have any, below the root: by cpu.max in version 2, by cpu.cfs_quota_us in
// version 1.
func newCPUGroup() (*cpuGroup, error) {
	raw, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil, fmt.Errorf("this system has no control groups: %w", err)
	}
	var failures []error
	for line := range strings.Lines(string(raw)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3) // number:controllers:path
		if len(parts) < 3 {
			continue
		}
		files := [][2]string{{"cpu.max", "100000 100000"}}
		roots := []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"}
		if controllers := "," + parts[1] + ","; strings.Contains(controllers, ",cpu,") {
			files = [][2]string{{"cpu.cfs_period_us", "100000"}, {"cpu.cfs_quota_us", "100000"}}
			roots = []string{"/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct"}
		} else if parts[1] != "" {
			continue
		}
		for _, root := range roots {
			own := filepath.Join(root, parts[2])
			for _, above := range []string{own, root} {
				g := &cpuGroup{dir: filepath.Join(above, "doorward-bench-"+strconv.Itoa(os.Getpid())), parent: own}
				err := g.make(files)
				if err == nil {
					return g, nil
				}
				failures = append(failures, err)
			}
		}
	}
	return nil, errors.Join(failures...)
}

func (g *cpuGroup) make(files [][2]string) error {
	if err := os.Mkdir(g.dir, 0o755); err != nil {
		return err
	}
	for _, file := range files {
		path := filepath.Join(g.dir, file[0])
		_, err := os.Stat(path) // a file system of another kind would let us make the file
		if err == nil {
			err = os.WriteFile(path, []byte(file[1]), 0)
		}
		if err != nil {
			return errors.Join(err, os.Remove(g.dir))
		}
	}
	return nil
}

// start calls fn in the group, so that the processes that it starts stay there.
func (g *cpuGroup) start(fn func() error) error {
	own := []byte(strconv.Itoa(os.Getpid()))
	if err := os.WriteFile(filepath.Join(g.dir, "cgroup.procs"), own, 0); err != nil {
		return fmt.Errorf("enter the control group: %w", err)
	}
	err := fn()
	if left := os.WriteFile(filepath.Join(g.parent, "cgroup.procs"), own, 0); left != nil {
		return errors.Join(err, fmt.Errorf("leave the control group: %w", left))
	}
	return err
}

// remove deletes the group, whose processes have ended.
func (g *cpuGroup) remove() error { return os.Remove(g.dir) }
