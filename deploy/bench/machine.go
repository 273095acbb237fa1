package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
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

// usedBetween waits for the end of a time, or of ctx, and returns what was used in it.
func usedBetween(ctx context.Context, roots []int, from, until time.Time) usage {
	waitUntil(ctx, from)
	before := readUsage(roots)
	waitUntil(ctx, until)
	return readUsage(roots).plus(before, -1)
}

func waitUntil(ctx context.Context, moment time.Time) {
	select {
	case <-ctx.Done():
	case <-time.After(time.Until(moment)):
	}
}

// readUsage returns what was used until now, by the roots and all processes below
// them; nothing where there is no /proc.
func readUsage(roots []int) usage {
	fs, _ := procfs.NewDefaultFS()
	stat, _ := fs.Stat()
	self, _ := fs.Self()
	own, _ := self.Stat()
	cpu := stat.CPUTotal
	u := usage{
		took:      time.Duration(time.Now().UnixNano()),
		generator: time.Duration(own.UTime+own.STime) * tick,
		machine:   time.Duration((cpu.User + cpu.Nice + cpu.System + cpu.IRQ + cpu.SoftIRQ + cpu.Steal) * float64(time.Second)),
		servers:   map[string]time.Duration{},
	}
	for _, p := range processes(roots) {
		u.servers[p.Comm] += (time.Duration(p.UTime+p.STime) + time.Duration(p.CUTime+p.CSTime)) * tick // its ended children too
	}
	return u
}

// processes returns the roots and all processes below them; none where there is no
// /proc.
func processes(roots []int) (found []procfs.ProcStat) {
	children := map[int][]procfs.ProcStat{}
	running, _ := procfs.AllProcs()
	for _, p := range running {
		stat, err := p.Stat()
		if err != nil {
			continue // it has ended
		}
		children[stat.PPID] = append(children[stat.PPID], stat)
		if slices.Contains(roots, stat.PID) {
			found = append(found, stat)
		}
	}
	for i := 0; i < len(found); i++ {
		found = append(found, children[found[i].PID]...)
	}
	return found
}

// started returns the processes that fn has started and left running.
func started(fn func() error) (roots []int, err error) {
	own := []int{os.Getpid()}
	before := processes(own)
	err = fn()
	for _, p := range processes(own) {
		old := slices.ContainsFunc(before, func(b procfs.ProcStat) bool { return b.PID == p.PID })
		if !old && p.PPID == own[0] {
			roots = append(roots, p.PID)
		}
	}
	return roots, err
}

// memory is the memory of processes and those below them in MiB, where a page that
// several share is divided among them (PSS).
func memory(roots []int) (float64, error) {
	var total uint64
	for _, member := range processes(roots) {
		p, _ := procfs.NewProc(member.PID)
		rollup, _ := p.ProcSMapsRollup() // nothing of what has ended
		total += rollup.Pss
	}
	if total == 0 {
		return 0, errors.New("this system has no /proc with smaps_rollup")
	}
	return float64(total) / (1 << 20), nil
}

// cpuGroup is the folder of a control group with a quota of one processor.
type cpuGroup string

// newCPUGroup makes one by cpu.max in version 2 and by cpu.cfs_quota_us in version 1,
// whose period is 100 ms by default.
func newCPUGroup() (g cpuGroup, err error) {
	root, file, quota := "/sys/fs/cgroup", "cpu.max", "100000 100000"
	if _, err := os.Stat(root + "/cpu/cpu.cfs_quota_us"); err == nil {
		root, file, quota = root+"/cpu", "cpu.cfs_quota_us", "100000"
	}
	g = cpuGroup(filepath.Join(root, "doorward-bench-"+strconv.Itoa(os.Getpid())))
	if err := os.Mkdir(string(g), 0o755); err != nil {
		return "", err
	}
	file = filepath.Join(string(g), file)
	_, missing := os.Stat(file) // in another kind of file system
	if err := cmp.Or(missing, os.WriteFile(file, []byte(quota), 0)); err != nil {
		return "", errors.Join(err, g.remove())
	}
	return g, nil
}

// wrap writes a program into a folder that enters the group and then runs another
// program of the same name.
func (g cpuGroup) wrap(program, dir string) error {
	script := fmt.Sprintf("#!/bin/sh\necho $$ >%s/cgroup.procs && exec %s \"$@\"\n", g, program)
	return errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, filepath.Base(program)), []byte(script), 0o755))
}

// remove deletes the group, whose processes have ended.
func (g cpuGroup) remove() error { return os.Remove(string(g)) }
