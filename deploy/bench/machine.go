package main

import (
	"context"
	"errors"
	"maps"
	"os"
	"runtime"
	"slices"
	"time"

	"github.com/prometheus/procfs"

	"github.com/doorward/doorward/deploy/e2e/harness"
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
	for _, p := range harness.Processes(roots...) {
		u.servers[p.Comm] += (time.Duration(p.UTime+p.STime) + time.Duration(p.CUTime+p.CSTime)) * tick // its ended children too
	}
	return u
}

// started returns the processes that fn has started and left running.
func started(fn func() error) (roots []int, err error) {
	own := os.Getpid()
	before := harness.Processes(own)
	err = fn()
	for _, p := range harness.Processes(own) {
		old := slices.ContainsFunc(before, func(b procfs.ProcStat) bool { return b.PID == p.PID })
		if !old && p.PPID == own {
			roots = append(roots, p.PID)
		}
	}
	return roots, err
}

// memory is the memory of processes and those below them in MiB, where a page that
// several share is divided among them (PSS).
func memory(roots []int) (float64, error) {
	var total uint64
	for _, member := range harness.Processes(roots...) {
		p, _ := procfs.NewProc(member.PID)
		rollup, _ := p.ProcSMapsRollup() // nothing of what has ended
		total += rollup.Pss
	}
	if total == 0 {
		return 0, errors.New("this system has no /proc with smaps_rollup")
	}
	return float64(total) / (1 << 20), nil
}

// newCPUGroup makes a control group with a quota of one processor. In version 1 its
// period is 100 ms by default.
func newCPUGroup() (harness.ControlGroup, error) {
	return harness.NewControlGroup("cpu", harness.Limit{File: "cpu.cfs_quota_us", Value: "100000"},
		harness.Limit{File: "cpu.max", Value: "100000 100000"})
}
