package secure

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
	HashInChildren()
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
	p := NewPasswords(cheap, 1, 10)
	apart, err := p.Hash(t.Context(), "Chängeme1!")
	if err != nil {
		t.Fatal(err)
	}
	at := <-p.places
	if at.child == nil {
		t.Fatal("the hash was not computed in a child")
	}
	p.leave(at)
	if err := p.Close(t.Context()); err != nil || at.child != nil {
		t.Fatalf("Close = %v, the child is %v", err, at.child)
	}
	in(t, "")
	p = NewPasswords(cheap, 1, 10)
	if match, _, err := p.Verify(t.Context(), apart, "Chängeme1!"); !match || err != nil {
		t.Errorf("Verify = %v, %v", match, err)
	}
}

func TestAChildThatEndsIsReplaced(t *testing.T) {
	in(t, myself)
	p := NewPasswords(cheap, 1, 10)
	stored, err := p.Hash(t.Context(), "Changeme1!")
	if err != nil {
		t.Fatal(err)
	}
	at := <-p.places
	first := at.child.command.Process
	if err := first.Kill(); err != nil {
		t.Fatal(err)
	}
	p.leave(at)
	for range 2 { // the first finds the child gone
		if match, _, err := p.Verify(t.Context(), stored, "Changeme1!"); !match || err != nil {
			t.Fatalf("Verify = %v, %v", match, err)
		}
	}
	if at.child == nil || at.child.command.Process.Pid == first.Pid {
		t.Fatal("the child was not replaced")
	}
}

func TestWithoutChildrenHashesAreComputedHere(t *testing.T) {
	for _, program := range []string{"", "/nowhere/to/be/found", "/bin/true"} {
		in(t, program)
		p := NewPasswords(cheap, 1, 10)
		stored, err := p.Hash(t.Context(), "Changeme1!")
		if err != nil {
			t.Fatal(err)
		}
		if match, _, err := p.Verify(t.Context(), stored, "Changeme1!"); !match || err != nil {
			t.Errorf("%q: %v, %v", program, match, err)
		}
	}
}

func TestAChildKnowsNothingOfTheEnvironment(t *testing.T) {
	t.Setenv("DOORWARD_SECRET_OF_A_TEST", "hunter2")
	in(t, myself)
	p := NewPasswords(cheap, 1, 10)
	if _, err := p.Hash(t.Context(), "Changeme1!"); err != nil {
		t.Fatal(err)
	}
	at := <-p.places
	for _, of := range at.child.command.Environ() {
		if strings.Contains(of, "hunter2") {
			t.Errorf("the child has %s", of)
		}
	}
}

// The priority of a session can be read where it can be set.
func TestAHashThatTakesLongGetsItsShare(t *testing.T) {
	in(t, myself)
	p := NewPasswords(cheap, 1, 10)
	quick, err := p.Hash(t.Context(), "Changeme1!")
	if err != nil {
		t.Fatal(err)
	}
	at := <-p.places
	child := at.child
	p.leave(at)
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
		if _, err := at.ask(question{costly.encode(make([]byte, saltLength), make([]byte, hashLength)), []byte("Changeme1!")}); err != nil {
			t.Fatal(err)
		}
		if costly.Time *= 2; costly.Time > maxTime {
			t.Fatal("no hash takes long")
		}
	}
	want("after a hash that took long", "nice 5")
	if match, _, err := p.Verify(t.Context(), quick, "Changeme1!"); !match || err != nil {
		t.Fatal(match, err)
	}
	want("soon afterwards", "nice 5")
	if since := child.raised.Load(); since != nil {
		earlier := since.Add(-2 * fair)
		child.raised.Store(&earlier)
	}
	if match, _, err := p.Verify(t.Context(), quick, "Changeme1!"); !match || err != nil {
		t.Fatal(match, err)
	}
	want("later", "nice 19")
}
