package pwhash

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// myself is this program, which can be its own child. Tests that do not ask for
// children have none.
var myself string

func TestMain(m *testing.M) {
	InChildren()
	myself, childProgram = childProgram, ""
	os.Exit(m.Run())
}

// in names the program that children run, for one test.
func in(t *testing.T, program string) {
	t.Helper()
	childProgram = program
	t.Cleanup(func() { childProgram = "" })
}

func TestHashesAreTheSameInAChildAndHere(t *testing.T) {
	in(t, myself)
	var p Place
	apart := p.Hash(cheap, []byte("Chängeme1!"))
	if p.child == nil {
		t.Fatal("the hash was not computed in a child")
	}
	if p.Close(); p.child != nil {
		t.Fatalf("after Close the child is %v", p.child)
	}
	in(t, "")
	if match, cost, err := p.Compare(apart, []byte("Chängeme1!")); !match || cost != cheap || err != nil {
		t.Errorf("Compare = %v, %v, %v", match, cost, err)
	}
}

func TestAChildThatEndsIsReplaced(t *testing.T) {
	in(t, myself)
	var p Place
	defer p.Close()
	stored := p.Hash(cheap, []byte("Changeme1!"))
	first := p.child.command.Process
	if err := first.Kill(); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the first finds the child gone
		if match, _, err := p.Compare(stored, []byte("Changeme1!")); !match || err != nil {
			t.Fatalf("Compare = %v, %v", match, err)
		}
	}
	if p.child == nil || p.child.command.Process.Pid == first.Pid {
		t.Fatal("the child was not replaced")
	}
}

func TestWithoutChildrenHashesAreComputedHere(t *testing.T) {
	for _, program := range []string{"", "/nowhere/to/be/found", "/bin/true"} {
		in(t, program)
		var p Place
		stored := p.Hash(cheap, []byte("Changeme1!"))
		if match, _, err := p.Compare(stored, []byte("Changeme1!")); !match || err != nil {
			t.Errorf("%q: %v, %v", program, match, err)
		}
	}
}

func TestAChildKnowsNothingOfTheEnvironment(t *testing.T) {
	t.Setenv("DOORWARD_SECRET_OF_A_TEST", "hunter2")
	in(t, myself)
	var p Place
	defer p.Close()
	p.Hash(cheap, []byte("Changeme1!"))
	for _, of := range p.child.command.Environ() {
		if strings.Contains(of, "hunter2") {
			t.Errorf("the child has %s", of)
		}
	}
}

// The priority of a session can be read where it can be set.
func TestAHashThatTakesLongGetsItsShare(t *testing.T) {
	in(t, myself)
	var p Place
	defer p.Close()
	quick := p.Hash(cheap, []byte("Changeme1!"))
	child := p.child
	priority := func() string {
		group, err := os.ReadFile(fmt.Sprintf("/proc/%d/autogroup", child.command.Process.Pid))
		if err != nil {
			return "none" // a kernel without groups has nothing to raise
		}
		_, nice, _ := strings.Cut(strings.TrimSpace(string(group)), " ")
		return nice
	}
	want := func(what, nice string) {
		t.Helper()
		if got := priority(); got != nice && got != "none" {
			t.Errorf("%s: the priority of the child is %q, want %q", what, got, nice)
		}
	}
	want("at first", "nice 19")
	costly := Cost{Memory: 1 << 14, Time: 1, Threads: 1}
	for child.raised.Load() == nil && priority() != "none" { // until one takes long
		if _, err := p.ask(question{costly.Dummy(), []byte("Changeme1!")}); err != nil {
			t.Fatal(err)
		}
		if costly.Time *= 2; costly.Time > maxTime {
			t.Fatal("no hash takes long")
		}
	}
	want("after a hash that took long", "nice 5")
	if match, _, err := p.Compare(quick, []byte("Changeme1!")); !match || err != nil {
		t.Fatal(match, err)
	}
	want("soon afterwards", "nice 5")
	if since := child.raised.Load(); since != nil {
		earlier := since.Add(-2 * fair)
		child.raised.Store(&earlier)
	}
	if match, _, err := p.Compare(quick, []byte("Changeme1!")); !match || err != nil {
		t.Fatal(match, err)
	}
	want("later", "nice 19")
}
