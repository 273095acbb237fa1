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
	"syscall"
	"time"
)

// tick is the unit of processor time under /proc, on every Linux in use.
const tick = 10 * time.Millisecond

// processors is a reading of what has used the processors so far.
type processors struct {
	generator time.Duration // this process
	server    time.Duration // the process under load
	children  time.Duration // and its children: its PostgreSQL
	machine   time.Duration // everything on the machine
}

func (p processors) minus(before processors) processors {
	return processors{
		generator: p.generator - before.generator,
		server:    p.server - before.server,
		children:  p.children - before.children,
		machine:   p.machine - before.machine,
	}
}

// usage is what was used within a time.
type usage struct {
	processors
	took time.Duration
}

// Shares tell where the processors' time went, in percent of all that there
// was. Others is what had nothing to do with the measurement.
type Shares struct {
	Generator float64 `json:"generatorPercent"`
	Server    float64 `json:"serverPercent"`
	Database  float64 `json:"databasePercent"`
	Others    float64 `json:"othersPercent"`
}

func (u usage) plus(other usage) usage {
	return usage{took: u.took + other.took, processors: processors{
		generator: u.generator + other.generator,
		server:    u.server + other.server,
		children:  u.children + other.children,
		machine:   u.machine + other.machine,
	}}
}

// shares are all zero where nothing was measured.
func (u usage) shares() Shares {
	if u.took == 0 {
		return Shares{}
	}
	of := func(d time.Duration) float64 {
		return 100 * max(0, d.Seconds()) / (u.took.Seconds() * float64(runtime.NumCPU()))
	}
	return Shares{
		Generator: of(u.generator), Server: of(u.server), Database: of(u.children),
		Others: of(u.machine - u.generator - u.server - u.children),
	}
}

// meter reads the processors while a process is under load. A pid of 0 stands
// for a process that is not ours to look at.
type meter struct{ pid int }

// between waits for the end of a time and returns what was used in it.
func (m *meter) between(ctx context.Context, from, until time.Time) (usage, error) {
	if err := await(ctx, from); err != nil {
		return usage{}, err
	}
	began := time.Now()
	before, err := m.read()
	if err != nil {
		return usage{}, err
	}
	if err := await(ctx, until); err != nil {
		return usage{}, err
	}
	after, err := m.read()
	return usage{after.minus(before), time.Since(began)}, err
}

func await(ctx context.Context, moment time.Time) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(time.Until(moment)):
		return nil
	}
}

// read knows only about this process where there is no /proc.
func (m *meter) read() (p processors, err error) {
	var own syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &own); err != nil {
		return p, fmt.Errorf("ask for the processor time: %w", err)
	}
	p.generator = time.Duration(own.Utime.Nano() + own.Stime.Nano())
	if runtime.GOOS != "linux" {
		return p, nil
	}
	if p.machine, err = machineTime(); err != nil || m.pid == 0 {
		return p, err
	}
	all, err := processTable()
	if err != nil {
		return p, err
	}
	if _, running := all[m.pid]; !running {
		return p, fmt.Errorf("process %d, which is measured, has ended", m.pid)
	}
	for pid, one := range all {
		switch {
		case pid == m.pid:
			p.server += one.used
			p.children += one.ended
		case all.descends(pid, m.pid):
			p.children += one.used + one.ended
		}
	}
	return p, nil
}

func machineTime() (time.Duration, error) {
	raw, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, fmt.Errorf("read the machine's processor time: %w", err)
	}
	line, _, _ := strings.Cut(string(raw), "\n")
	fields := strings.Fields(line) // cpu user nice system idle iowait irq softirq steal guest …
	if len(fields) < 9 {
		return 0, fmt.Errorf("read the machine's processor time: %q", line)
	}
	var busy time.Duration
	for _, n := range []int{1, 2, 3, 6, 7, 8} {
		busy += ticks(fields[n])
	}
	return busy, nil
}

func ticks(field string) time.Duration {
	n, _ := strconv.ParseInt(field, 10, 64) // the kernel writes numbers
	return time.Duration(n) * tick
}

// resident is one process of the machine.
type resident struct {
	parent int
	used   time.Duration // by itself
	ended  time.Duration // by its children that have ended
}

type table map[int]resident

// processTable passes over what ends while it is read.
func processTable() (table, error) {
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil, fmt.Errorf("list the processes: %w", err)
	}
	all := table{}
	for _, stat := range stats {
		raw, err := os.ReadFile(stat)
		if err != nil {
			continue
		}
		text := string(raw) // pid (name) state parent …; a name may hold anything
		fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
		if len(fields) < 15 {
			continue
		}
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(stat)))
		parent, _ := strconv.Atoi(fields[1])
		all[pid] = resident{parent: parent, used: ticks(fields[11]) + ticks(fields[12]), ended: ticks(fields[13]) + ticks(fields[14])}
	}
	return all, nil
}

func (t table) descends(pid, ancestor int) bool {
	for range len(t) { // a chain is not longer than the table
		parent := t[pid].parent
		if parent == ancestor {
			return true
		}
		if parent <= 1 {
			return false
		}
		pid = parent
	}
	return false
}

// child finds the one child of this process that runs the program; 0 where
// there is no /proc.
func child(program string) (int, error) {
	if runtime.GOOS != "linux" {
		return 0, nil
	}
	all, err := processTable()
	if err != nil {
		return 0, err
	}
	for pid, one := range all {
		if one.parent != os.Getpid() {
			continue
		}
		if name, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "comm")); err == nil && strings.TrimSpace(string(name)) == program {
			return pid, nil
		}
	}
	return 0, fmt.Errorf("found no child process that runs %s", program)
}

var errNoMemory = errors.New("this system does not tell the memory of a process")

// memory returns the resident memory of a process in bytes, now and at its
// highest. Its children do not count.
func memory(pid int) (now, highest int64, err error) {
	if pid == 0 {
		return 0, 0, errNoMemory
	}
	raw, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "status"))
	if err != nil {
		return 0, 0, fmt.Errorf("read the memory of a process: %w", err)
	}
	for line := range strings.Lines(string(raw)) {
		fields := strings.Fields(line)
		if len(fields) != 3 || fields[2] != "kB" {
			continue
		}
		n, _ := strconv.ParseInt(fields[1], 10, 64)
		switch fields[0] {
		case "VmRSS:":
			now = n << 10
		case "VmHWM:":
			highest = n << 10
		}
	}
	if now == 0 {
		return 0, 0, errNoMemory
	}
	return now, highest, nil
}
