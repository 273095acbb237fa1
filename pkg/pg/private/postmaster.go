package private

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

// postmaster is the server's first process, the parent of all others.
type postmaster struct {
	command *exec.Cmd
	log     *outputTail
}

// postmaster starts the server on a data folder. On Linux it ends when this
// process dies, in the orderly way, however this process dies.
func (a account) postmaster(bin, data string, settings []string, log io.Writer) (*postmaster, error) {
	arguments := []string{"-D", data}
	for _, setting := range settings {
		arguments = append(arguments, "-c", setting)
	}
	p := &postmaster{
		command: a.command(context.Background(), filepath.Join(bin, "postgres"), data, arguments, syscall.SIGINT),
		log:     &outputTail{to: log},
	}
	p.command.Stdout, p.command.Stderr = p.log, p.log
	// A backend that outlives a killed postmaster holds the log open for a moment.
	p.command.WaitDelay = time.Second
	if err := startProcess(p.command); err != nil {
		return nil, err
	}
	return p, nil
}

func (p *postmaster) pid() int { return p.command.Process.Pid }

// signal is harmless once the process has ended.
func (p *postmaster) signal(signal os.Signal) { _ = p.command.Process.Signal(signal) }

// wait returns how the process ended, never nil, with the end of its log.
func (p *postmaster) wait() error {
	err := p.command.Wait()
	if err == nil {
		return fmt.Errorf("it was stopped from outside\n%s", p.log)
	}
	return fmt.Errorf("%w\n%s", err, p.log)
}

// run runs a program of PostgreSQL's to its end and returns what it said, which
// is also in the error. It dies with this process.
func (a account) run(ctx context.Context, program, dir string, arguments []string) (string, error) {
	said := &outputTail{to: io.Discard}
	command := a.command(ctx, program, dir, arguments, syscall.SIGKILL)
	command.Stdout, command.Stderr = said, said
	command.WaitDelay = time.Second
	err := startProcess(command)
	if err == nil {
		err = command.Wait()
	}
	if err != nil {
		return said.String(), fmt.Errorf("%s: %w\n%s", filepath.Base(program), err, said)
	}
	return said.String(), nil
}

// command is a program run by the account, in a folder that the account can
// enter. It is out of reach of the terminal's Ctrl-C, which is the launcher's to
// handle, and sees nothing of our environment, where secrets may be.
func (a account) command(ctx context.Context, program, dir string, arguments []string, death syscall.Signal) *exec.Cmd {
	command := exec.CommandContext(ctx, program, arguments...)
	command.Dir = dir
	command.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "TZ=UTC"}
	if libraries, set := os.LookupEnv("LD_LIBRARY_PATH"); set {
		command.Env = append(command.Env, "LD_LIBRARY_PATH="+libraries)
	}
	command.SysProcAttr = processAttributes(a.credential(), death)
	return command
}

// starter is a goroutine that keeps its thread for ever: Linux sends the signal
// of a parent's death when the thread that started the child ends.
var processStarter = sync.OnceValue(func() chan<- func() {
	starts := make(chan func())
	go func() {
		runtime.LockOSThread()
		for begin := range starts {
			begin()
		}
	}()
	return starts
})

func startProcess(command *exec.Cmd) error {
	result := make(chan error)
	processStarter() <- func() { result <- command.Start() }
	return <-result
}

// lastWords passes output on and keeps its end for the error that reports how a
// program ended.
type outputTail struct {
	mu  sync.Mutex
	to  io.Writer
	tail []byte
}

const maxTail = 2000

func (w *outputTail) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tail = append(w.tail, p...)
	if len(w.tail) > maxTail {
		w.tail = bytes.Clone(w.tail[len(w.tail)-maxTail:])
	}
	_, _ = w.to.Write(p) // the server goes on when its log is on a full disk
	return len(p), nil
}

func (w *outputTail) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.TrimSpace(string(w.tail))
}
