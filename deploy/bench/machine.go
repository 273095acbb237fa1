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

// clockTick is the unit of processor time under /proc, on every Linux in use.
const clockTick = 10 * time.Millisecond

// usage is processor time: of the processes that are measured, by their names, of
// this process, and of the whole machine.
type usage struct {
	took, generator, machine time.Duration
	processes                map[string]time.Duration
}

// plus adds another usage so many times; -1 subtracts it.
func (u usage) plus(other usage, times time.Duration) usage {
	sum := usage{u.took + times*other.took, u.generator + times*other.generator, u.machine + times*other.machine,
		map[string]time.Duration{}}
	maps.Copy(sum.processes, u.processes)
	for name, used := range other.processes {
		sum.processes[name] += times * used
	}
	return sum
}

// measured is what all measured processes used.
func (u usage) measured() (sum time.Duration) {
	for _, used := range u.processes {
		sum += used
	}
	return sum
}

// percent is a part of the time of all processors.
func (u usage) percent(part time.Duration) float64 {
	if u.took == 0 {
		return 0
	}
	return 100 * max(0, part.Seconds()) / (u.took.Seconds() * float64(runtime.NumCPU()))
}

// usageBetween waits for the end of a time, or of ctx, and returns what was used in it.
func usageBetween(ctx context.Context, processes []int, from, until time.Time) usage {
	waitUntil(ctx, from)
	before := readUsage(processes)
	waitUntil(ctx, until)
	return readUsage(processes).plus(before, -1)
}

func waitUntil(ctx context.Context, moment time.Time) {
	select {
	case <-ctx.Done():
	case <-time.After(time.Until(moment)):
	}
}

// readUsage returns what was used until now, by processes and all below them;
// nothing where there is no /proc.
func readUsage(processes []int) usage {
	fs, _ := procfs.NewDefaultFS()
	stat, _ := fs.Stat()
	self, _ := fs.Self()
	own, _ := self.Stat()
	cpu := stat.CPUTotal
	u := usage{
		took:      time.Duration(time.Now().UnixNano()),
		generator: time.Duration(own.UTime+own.STime) * clockTick,
		machine:   time.Duration((cpu.User + cpu.Nice + cpu.System + cpu.IRQ + cpu.SoftIRQ + cpu.Steal) * float64(time.Second)),
		processes: map[string]time.Duration{},
	}
	for _, p := range harness.Processes(processes...) {
		// its ended children too
		u.processes[p.Comm] += (time.Duration(p.UTime+p.STime) + time.Duration(p.CUTime+p.CSTime)) * clockTick
	}
	return u
}

// startedBy returns the child processes that start has started and left running.
func startedBy(start func() error) (processes []int, err error) {
	before := children()
	err = start()
	return slices.DeleteFunc(children(), func(pid int) bool { return slices.Contains(before, pid) }), err
}

func children() (processes []int) {
	for _, p := range harness.Processes(os.Getpid()) {
		if p.PPID == os.Getpid() {
			processes = append(processes, p.PID)
		}
	}
	return processes
}

// memory is the memory of processes and those below them in MiB, where a page that
// several share is divided among them (PSS).
func memory(processes []int) (float64, error) {
	var total uint64
	for _, member := range harness.Processes(processes...) {
		p, _ := procfs.NewProc(member.PID)
		rollup, _ := p.ProcSMapsRollup() // nothing of a process that has ended
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
