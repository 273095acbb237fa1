package faults

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/procfs"
)

// clockCode replaces the function of the kernel's shared object (vDSO) by which a
// process reads its clocks, on amd64: it makes the system call, and adds seconds to the
// result where the clock is CLOCK_REALTIME. Go programs are linked statically, so that a
// library such as libfaketime cannot be loaded into them.
var clockCode = []byte{
	0xb8, 0xe4, 0x00, 0x00, 0x00, // mov  eax, SYS_clock_gettime
	0x0f, 0x05, //                   syscall
	0x85, 0xff, //                   test edi, edi
	0x75, 0x07, //                   jnz  to ret
	0x48, 0x81, 0x06, 0, 0, 0, 0, // add  qword [rsi], seconds
	0xc3, //                         ret
}

// clockSecondsOffset is the offset of the seconds in clockCode.
const clockSecondsOffset = 14

// setClock sets the wall clock of one running process off from the machine's by a duration
// (clock skew). The monotonic clock of the process stays as it is.
func setClock(pid int, by time.Duration) error {
	function, err := clockFunction(pid)
	if err != nil {
		return fmt.Errorf("find the clock of process %d: %w", pid, err)
	}
	code := bytes.Clone(clockCode)
	binary.LittleEndian.PutUint32(code[clockSecondsOffset:], uint32(int32(by/time.Second)))
	memory, err := os.OpenFile(fmt.Sprintf("/proc/%d/mem", pid), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer memory.Close()
	process, err := os.FindProcess(pid)
	if err != nil {
		return err
	}
	for range 100 {
		if err := process.Signal(syscall.SIGSTOP); err != nil {
			return err
		}
		busy, err := executesIn(pid, function, function+int64(len(code)))
		for tries := 0; errors.Is(err, errRunning) && tries < 1000; tries++ { // a busy machine takes its time
			<-time.After(5 * time.Millisecond)
			busy, err = executesIn(pid, function, function+int64(len(code)))
		}
		if err == nil && !busy {
			_, err = memory.WriteAt(code, function)
		}
		if err := errors.Join(err, process.Signal(syscall.SIGCONT)); err != nil || !busy {
			return err
		}
	}
	return fmt.Errorf("process %d is always reading its clock", pid)
}

// clockFunction is the address of __vdso_clock_gettime in a process.
func clockFunction(pid int) (int64, error) {
	process, err := procfs.NewProc(pid)
	if err != nil {
		return 0, err
	}
	maps, err := process.ProcMaps()
	if err != nil {
		return 0, err
	}
	i := slices.IndexFunc(maps, func(m *procfs.ProcMap) bool { return m.Pathname == "[vdso]" })
	if i < 0 {
		return 0, errors.New("it has no vDSO")
	}
	from, end := int64(maps[i].StartAddr), int64(maps[i].EndAddr)
	memory, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
	if err != nil {
		return 0, err
	}
	defer memory.Close()
	object, err := elf.NewFile(io.NewSectionReader(memory, from, end-from))
	if err != nil {
		return 0, err
	}
	if object.Machine != elf.EM_X86_64 {
		return 0, fmt.Errorf("no code for %s", object.Machine)
	}
	symbols, err := object.DynamicSymbols()
	if err != nil {
		return 0, err
	}
	for _, symbol := range symbols {
		if symbol.Name == "__vdso_clock_gettime" {
			return from + int64(symbol.Value), nil
		}
	}
	return 0, errors.New("its vDSO has no __vdso_clock_gettime")
}

// errRunning is the error of executesIn for a process with a thread that has not stopped yet.
var errRunning = errors.New("a thread still runs")

// executesIn reports whether a thread of a stopped process is between two addresses.
func executesIn(pid int, from, end int64) (bool, error) {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/syscall", pid))
	if err != nil {
		return false, err
	}
	for _, thread := range threads {
		raw, err := os.ReadFile(thread)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return false, err
		}
		fields := strings.Fields(string(raw))
		if len(fields) < 2 { // "running"
			return false, errRunning
		}
		at, err := strconv.ParseInt(strings.TrimPrefix(fields[len(fields)-1], "0x"), 16, 64)
		if err != nil {
			return false, err
		}
		if at > from && at < end {
			return true, nil
		}
	}
	return false, nil
}
