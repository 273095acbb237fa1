package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/procfs"
)

// tick is the unit of processor time under /proc, on every Linux in use.
const tick = 10 * time.Millisecond

// usage is processor time: of the processes that are measured, by their names, of
// this process, and of the whole machine.
type usage struct {
	took, generator, machine time.Duration
	servers                  map[string]time.Duration
}

// plus adds another usage some times; -1 subtracts it.
func (u usage) plus(other usage, times time.Duration) usage {
	sum := usage{u.took + times*other.took, u.generator + times*other.generator, u.machine + times*other.machine, map[string]time.Duration{}}
	maps.Copy(sum.servers, u.servers)
	for name, used := range other.servers {
		sum.servers[name] += times * used
	}
	return sum
}

// server is what all measured processes used.
func (u usage) server() (sum time.Duration) {
	for _, used := range u.servers {
		sum += used
	}
	return sum
}

// percent of all processors.
func (u usage) percent(of time.Duration) float64 {
	if u.took == 0 {
		return 0
	}
	return 100 * max(0, of.Seconds()) / (u.took.Seconds() * float64(runtime.NumCPU()))
}

// usedBetween waits for the end of a time and returns what was used in it.
func usedBetween(ctx context.Context, roots []int, from, until time.Time) (used usage, err error) {
	for _, moment := range []time.Time{from, until} {
		select {
		case <-ctx.Done():
			return usage{}, ctx.Err()
		case <-time.After(time.Until(moment)):
		}
		now, err := readUsage(roots)
		if err != nil {
			return usage{}, err
		}
		used = now.plus(used, -1)
	}
	return used, nil
}

// readUsage returns what was used until now, by the roots and all processes below
// them; nothing where there is no /proc.
func readUsage(roots []int) (usage, error) {
	u := usage{took: time.Duration(time.Now().UnixNano()), servers: map[string]time.Duration{}}
	if runtime.GOOS != "linux" {
		return u, nil
	}
	fs, err := procfs.NewDefaultFS()
	if err != nil {
		return u, err
	}
	stat, err := fs.Stat()
	if err != nil {
		return u, fmt.Errorf("read the machine's processor time: %w", err)
	}
	cpu := stat.CPUTotal
	u.machine = time.Duration((cpu.User + cpu.Nice + cpu.System + cpu.IRQ + cpu.SoftIRQ + cpu.Steal) * float64(time.Second))
	all := processes()
	u.generator = time.Duration(all[os.Getpid()].UTime+all[os.Getpid()].STime) * tick
	for _, root := range roots {
		if _, running := all[root]; !running {
			return u, fmt.Errorf("process %d, which is measured, has ended", root)
		}
	}
	for _, member := range all.below(roots) {
		p := all[member]
		u.servers[p.Comm] += (time.Duration(p.UTime+p.STime) + time.Duration(p.CUTime+p.CSTime)) * tick // its ended children too
	}
	return u, nil
}

type processTable map[int]procfs.ProcStat

// processes are those of the machine, without those that end while it is read;
// none where there is no /proc.
func processes() processTable {
	all := processTable{}
	running, _ := procfs.AllProcs()
	for _, p := range running {
		if stat, err := p.Stat(); err == nil {
			all[p.PID] = stat
		}
	}
	return all
}

// below returns processes and all below them.
func (t processTable) below(roots []int) []int {
	members := slices.Clone(roots)
	for i := 0; i < len(members); i++ {
		members = append(members, t.children(members[i])...)
	}
	return members
}

func (t processTable) children(parent int) (found []int) {
	for pid, p := range t {
		if p.PPID == parent {
			found = append(found, pid)
		}
	}
	return found
}

// started returns the processes that fn has started and left running.
func started(fn func() error) (roots []int, err error) {
	before := processes()
	err = fn()
	for _, pid := range processes().children(os.Getpid()) {
		if _, old := before[pid]; !old {
			roots = append(roots, pid)
		}
	}
	return roots, err
}

// memory is the memory of processes and their children in MiB, where a page that
// several share is divided among them (PSS).
func memory(roots []int) (float64, error) {
	var total uint64
	for _, member := range processes().below(roots) {
		p, err := procfs.NewProc(member)
		if err != nil {
			continue // it has ended
		}
		rollup, err := p.ProcSMapsRollup()
		if err != nil && !errors.Is(err, os.ErrNotExist) && !errors.Is(err, syscall.ESRCH) {
			return 0, fmt.Errorf("read the memory of a process: %w", err)
		}
		total += rollup.Pss
	}
	if total == 0 {
		return 0, errors.New("this system has no /proc with smaps_rollup")
	}
	return float64(total) / (1 << 20), nil
}

// cpuGroup is a control group with a quota of one processor.
type cpuGroup struct{ dir, parent string }

// newCPUGroup makes one below the group of this process or, where that cannot
// have any, below the root: by cpu.max in version 2, by cpu.cfs_quota_us in
// version 1, whose period is 100 ms by default.
func newCPUGroup() (*cpuGroup, error) {
	raw, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil, fmt.Errorf("this system has no control groups: %w", err)
	}
	paths := map[string]string{} // the group of this process by controller; that of version 2 has none
	for line := range strings.Lines(string(raw)) {
		if parts := strings.SplitN(strings.TrimSpace(line), ":", 3); len(parts) == 3 {
			for _, controller := range strings.Split(parts[1], ",") {
				paths[controller] = parts[2]
			}
		}
	}
	var failures []error
	for _, version := range []struct{ root, controller, file, quota string }{
		{"/sys/fs/cgroup", "", "cpu.max", "100000 100000"},
		{"/sys/fs/cgroup/unified", "", "cpu.max", "100000 100000"},
		{"/sys/fs/cgroup/cpu", "cpu", "cpu.cfs_quota_us", "100000"},
		{"/sys/fs/cgroup/cpu,cpuacct", "cpu", "cpu.cfs_quota_us", "100000"},
	} {
		own := filepath.Join(version.root, paths[version.controller])
		for _, above := range []string{own, version.root} {
			g := &cpuGroup{dir: filepath.Join(above, "doorward-bench-"+strconv.Itoa(os.Getpid())), parent: own}
			if err = os.Mkdir(g.dir, 0o755); err == nil {
				if err = g.write(version.file, version.quota); err == nil {
					return g, nil
				}
				err = errors.Join(err, g.remove())
			}
			failures = append(failures, err)
		}
	}
	return nil, errors.Join(failures...)
}

// write fails where there is no such file: the folder belongs to another kind of
// file system then.
func (g *cpuGroup) write(file, text string) error {
	f, err := os.OpenFile(filepath.Join(g.dir, file), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// start calls fn in the group, so that the processes that it starts stay there.
func (g *cpuGroup) start(fn func() error) error {
	own := strconv.Itoa(os.Getpid())
	if err := g.write("cgroup.procs", own); err != nil {
		return fmt.Errorf("enter the control group: %w", err)
	}
	err := fn()
	outside := cpuGroup{dir: g.parent}
	return errors.Join(err, outside.write("cgroup.procs", own))
}

// remove deletes the group, whose processes have ended.
func (g *cpuGroup) remove() error { return os.Remove(g.dir) }
