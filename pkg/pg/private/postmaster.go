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
	log     *lastWords
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
		log:     &lastWords{to: log},
	}
	p.command.Stdout, p.command.Stderr = p.log, p.log
	// A backend that outlives a killed postmaster holds the log open for a moment.
	p.command.WaitDelay = time.Second
	if err := start(p.command); err != nil {
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
	said := &lastWords{to: io.Discard}
	command := a.command(ctx, program, dir, arguments, syscall.SIGKILL)
	command.Stdout, command.Stderr = said, said
	command.WaitDelay = time.Second
	err := start(command)
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
	command.SysProcAttr = attributes(a.credential(), death)
	return command
}

// starter is a goroutine that keeps its thread for ever: Linux sends the signal
// of a parent's death when the thread that started the child ends.
var starter = sync.OnceValue(func() chan<- func() {
	starts := make(chan func())
	go func() {
		runtime.LockOSThread()
		for begin := range starts {
			begin()
		}
	}()
	return starts
})

func start(command *exec.Cmd) error {
	result := make(chan error)
	starter() <- func() { result <- command.Start() }
	return <-result
}

// lastWords passes output on and keeps its end for the error that reports how a
// program ended.
type lastWords struct {
	mu  sync.Mutex
	to  io.Writer
	end []byte
}

const wordsKept = 2000

func (w *lastWords) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.end = append(w.end, p...)
	if len(w.end) > wordsKept {
		w.end = bytes.Clone(w.end[len(w.end)-wordsKept:])
	}
	_, _ = w.to.Write(p) // the server goes on when its log is on a full disk
	return len(p), nil
}

func (w *lastWords) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.TrimSpace(string(w.end))
}
