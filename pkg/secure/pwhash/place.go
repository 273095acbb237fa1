package pwhash

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"sync/atomic"
	"time"
)

// Place is where one hash at a time is computed: in a child process, or here
// where there are no children. The zero value is ready.
type Place struct{ child *child }

// Hash makes the stored form of a password, in the PHC string format.
func (p *Place) Hash(cost Cost, password []byte) string {
	salt := make([]byte, saltLength)
	_, _ = rand.Read(salt)
	blank := make([]byte, hashLength)
	return cost.encode(salt, p.derive(cost.encode(salt, blank), cost.form(salt, blank), password))
}

// Compare reports whether a password is behind its stored form, and at which
// cost it was hashed: zero for an imported form. What is no stored form is an
// error.
func (p *Place) Compare(stored string, password []byte) (match bool, cost Cost, err error) {
	form, err := parse(stored)
	if err != nil {
		return false, Cost{}, fmt.Errorf("a stored password cannot be read: %w", err)
	}
	return subtle.ConstantTimeCompare(p.derive(stored, form, password), form.want) == 1, form.cost, nil
}

// childArgument makes a process a child; childProgram is the program to start,
// empty where there are no children.
const childArgument = "hash-passwords"

var childProgram string

// InChildren lets places compute their hashes in child processes, each the same
// program again: the operating system gives them a low priority, and their memory
// is theirs, so that hashes take little of the processors that something else
// needs and hardly delay a request. (Goroutines of low priority do not exist, and
// argon2 starts its own, so a thread of low priority is not enough.)
func InChildren() {
	if program, err := os.Executable(); err == nil {
		childProgram = program
	}
}

// A process that was started as a child comes no further than here. The packages
// that a program initialises after this one, which needs few itself, leave tens of
// thousands of objects, and the collection after each hash would look at them all
// for a twentieth of the time that a hash takes. The goroutine of init keeps to one
// thread, so that another serves.
func init() {
	if len(os.Args) != 2 || os.Args[1] != childArgument {
		return
	}
	served := make(chan error)
	go func() { served <- serve(os.Stdin, os.Stdout) }()
	if err := <-served; err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// reserved is the address space in which a child computes its hashes. It costs
// memory only where it is written to.
const reserved = 128 << 20

// question asks a child for a digest; the answer is its bytes.
type question struct {
	Stored   string // the form that says how
	Password []byte
}

// serve answers questions until there are no more. The memory of a hash is
// collected once it has been answered, and used again.
func serve(in io.Reader, out io.Writer) error {
	questions, answers := json.NewDecoder(in), json.NewEncoder(out)
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
func (p *Place) derive(stored string, form form, password []byte) []byte {
	if childProgram == "" {
		return form.derive(password)
	}
	digest, err := p.ask(question{stored, password})
	if err != nil {
		p.Close()
		slog.Warn("a child that hashes passwords failed; the hash is computed in this process", "error", err.Error())
		return form.derive(password)
	}
	return digest
}

func (p *Place) ask(q question) (digest []byte, err error) {
	if p.child == nil {
		if p.child, err = startChild(); err != nil {
			return nil, err
		}
	}
	starves := time.AfterFunc(starving, p.child.raise)
	defer func() {
		if starves.Stop() {
			p.child.lower()
		}
	}()
	if err := p.child.questions.Encode(q); err != nil {
		return nil, err
	}
	return digest, p.child.answers.Decode(&digest)
}

// Close ends the child.
func (p *Place) Close() {
	if p.child != nil {
		_ = p.child.in.Close()
		_ = p.child.command.Wait()
		p.child = nil
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
// secrets. Its memory is collected when it says so, and the lanes of a hash take
// turns on one processor, because there is a place for each.
func startChild() (*child, error) {
	command := exec.Command(childProgram, childArgument)
	command.Env = []string{"GOGC=off", "GOMAXPROCS=1"}
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
