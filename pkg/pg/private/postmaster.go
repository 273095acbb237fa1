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

// postmaster is the main process of the server, the parent of all its processes.
type postmaster struct {
	command *exec.Cmd
	log     *outputTail
}

// postmaster starts the server on a data folder. On Linux it gets SIGINT (fast shutdown) when this
// process dies, even if this process is killed.
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
	// A backend of a killed postmaster has the log open for another moment.
	p.command.WaitDelay = time.Second
	if err := startProcess(p.command); err != nil {
		return nil, err
	}
	return p, nil
}

func (p *postmaster) pid() int { return p.command.Process.Pid }

// signal sends a signal; it does nothing after the process has ended.
func (p *postmaster) signal(signal os.Signal) { _ = p.command.Process.Signal(signal) }

// wait waits until the process ends. It returns how it ended, with the end of its log, and never nil.
func (p *postmaster) wait() error {
	err := p.command.Wait()
	if err == nil {
		return fmt.Errorf("it was stopped from outside\n%s", p.log)
	}
	return fmt.Errorf("%w\n%s", err, p.log)
}

// run runs a program of PostgreSQL to its end and returns its output, which is also in the error. On
// Linux the program is killed when this process dies.
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

// command returns a command that runs a program as the account, in a folder that the account can
// enter. It does not get the Ctrl-C of the terminal, which this process handles, nor the environment
// of this process, which may have secrets.
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

// processStarter is a goroutine that starts processes and is locked to its thread for ever: Linux sends
// the signal of the parent's death (Pdeathsig) when the thread that has started the child ends.
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

// outputTail writes output to a writer, and keeps the end of it for the error that reports how a
// program ended.
type outputTail struct {
	mu   sync.Mutex
	to   io.Writer
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
