package secure

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"time"
)

// place is where one hash at a time is computed: in a child process, or here
// where there are no children.
type place struct{ child *child }

// childArgument makes a process a child; childProgram is the program to start,
// empty where there are no children.
const childArgument = "hash-passwords"

var childProgram string

// HashInChildren stands first in the main function of a process that hashes
// passwords. It lets the pools compute their hashes in child processes, each
// the same program again: the operating system gives them a low priority, and
// their memory is theirs, so that hashes take little of the processors that
// something else needs and hardly delay a request. (Goroutines of low priority do
// not exist, and argon2 starts its own, so a thread of low priority is not
// enough.) In such a child it computes until the parent ends, and does not return.
func HashInChildren() {
	if len(os.Args) == 2 && os.Args[1] == childArgument {
		if err := serveHashes(os.Stdin, os.Stdout); err != nil {
			_, _ = fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if program, err := os.Executable(); err == nil {
		childProgram = program
	}
}

// reserved is the address space in which a child computes its hashes. It costs
// memory only where it is written to.
const reserved = 128 << 20

// question asks a child for a digest; the answer is its bytes.
type question struct {
	Stored   string // the form that says how
	Password []byte
}

// serveHashes answers questions until there are no more.
func serveHashes(in io.Reader, out io.Writer) error {
	questions, answers := json.NewDecoder(in), json.NewEncoder(out)
	debug.SetGCPercent(-1) // the memory of a hash is collected once it has been answered, and used again
	adviseHuge(make([]byte, reserved))
	for {
		var q question
		if err := questions.Decode(&q); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		form, err := parse(q.Stored)
		if err != nil {
			return err
		}
		if err := answers.Encode(form.derive(q.Password)); err != nil {
			return err
		}
		runtime.GC()
	}
}

// derive makes the digest of a password under a form. A child that fails is
// replaced at the next hash; this one is computed here.
func (at *place) derive(stored string, form form, password Secret) []byte {
	if childProgram == "" {
		return form.derive([]byte(password))
	}
	digest, err := at.ask(question{stored, []byte(password)})
	if err != nil {
		at.close()
		slog.Warn("a child that hashes passwords failed; the hash is computed in this process", "error", err.Error())
		return form.derive([]byte(password))
	}
	return digest
}

func (at *place) ask(q question) (digest []byte, err error) {
	if at.child == nil {
		if at.child, err = startChild(); err != nil {
			return nil, err
		}
	}
	starves := time.AfterFunc(starving, at.child.raise)
	defer func() {
		if starves.Stop() {
			at.child.lower()
		}
	}()
	if err := at.child.questions.Encode(q); err != nil {
		return nil, err
	}
	return digest, at.child.answers.Decode(&digest)
}

// close ends the child.
func (at *place) close() {
	if at.child != nil {
		_ = at.child.in.Close()
		_ = at.child.command.Wait()
		at.child = nil
	}
}

// The lowest priority is for a machine that has time for hashes beside everything
// else. Where it has none, a login would wait for ever: a child whose hash takes
// longer than starving is given a third of the share that anybody has, for as long
// as fair at least.
const (
	starving = time.Second
	fair     = 10 * time.Second
)

// child is a process that computes hashes.
type child struct {
	command   *exec.Cmd
	in        io.Closer
	questions *json.Encoder
	answers   *json.Decoder
	raised    atomic.Pointer[time.Time] // since when its priority is not low; nil: it is
}

func (c *child) raise() {
	if setPriority(c.command.Process.Pid, enough) == nil {
		now := time.Now()
		c.raised.Store(&now)
	}
}

func (c *child) lower() {
	if since := c.raised.Load(); since != nil && time.Since(*since) > fair && setPriority(c.command.Process.Pid, lowest) == nil {
		c.raised.Store(nil)
	}
}

// startChild starts a child. It gets nothing of the environment, which holds
// secrets.
func startChild() (*child, error) {
	command := exec.Command(childProgram, childArgument)
	command.Env = []string{}
	command.Stderr = os.Stderr
	in, err := command.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := startLow(command); err != nil {
		return nil, fmt.Errorf("start %s %s: %w", childProgram, childArgument, err)
	}
	return &child{command: command, in: in, questions: json.NewEncoder(in), answers: json.NewDecoder(out)}, nil
}
