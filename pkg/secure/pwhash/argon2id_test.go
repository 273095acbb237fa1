package pwhash

import (
	"testing"
)

var cheap = Cost{Memory: 64, Time: 1, Threads: 1}

func TestACostIsBounded(t *testing.T) {
	for _, c := range []struct {
		memory, time, threads int
		ok                    bool
	}{{8, 1, 1, true}, {7, 1, 1, false}, {4 << 20, 1000, 255, true}, {4<<20 + 1, 1, 1, false}, {8, 0, 1, false}, {8, 1001, 1, false}, {8, 1, 0, false}, {8, 1, 256, false}} {
		if _, err := NewCost(c.memory, c.time, c.threads); (err == nil) != c.ok {
			t.Errorf("NewCost(%d, %d, %d): %v", c.memory, c.time, c.threads, err)
		}
	}
}

func FuzzStoredHash(f *testing.F) {
	f.Add(cheap.encode(make([]byte, 16), make([]byte, 32)))
	f.Add("$argon2id$v=19$m=1,t=1,p=0$$")
	f.Add("$argon2id$v=19$m=64,t=1,p=+1$AAAA$AAAA")
	f.Fuzz(func(t *testing.T, stored string) {
		form, err := parseArgon2id(stored)
		if err == nil && (form.cost.Memory > maxMemory || form.cost.Time > maxTime || form.matches == nil) {
			t.Fatalf("%q is read as %v", stored, form.cost)
		}
	})
}
