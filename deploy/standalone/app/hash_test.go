package app_test

import (
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"testing"
)

// What is initialised in a process that hashes passwords is looked through after
// each hash. This program has all packages, and some have tens of thousands of
// objects.
func TestAProcessThatHashesPasswordsInitialisesLittle(t *testing.T) {
	child := exec.Command(os.Args[0], "hash-passwords")
	child.Env = []string{"GODEBUG=inittrace=1"}
	trace, err := child.CombinedOutput() // it ends at once: nobody asks for a hash
	if err != nil {
		t.Fatalf("%v\n%s", err, trace)
	}
	packages := regexp.MustCompile(`(?m)^init (\S+) .* (\d+) allocs$`).FindAllSubmatch(trace, -1)
	objects := 0
	for _, p := range packages {
		n, err := strconv.Atoi(string(p[2]))
		if err != nil {
			t.Fatal(err)
		}
		objects += n
	}
	if len(packages) == 0 || objects > 10_000 {
		t.Errorf("%d packages make %d objects:\n%s", len(packages), objects, trace)
	}
}
