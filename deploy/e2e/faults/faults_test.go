package faults

import (
	"os"
	"testing"
	"time"
)

// Runs for FAULTS_FOR, with the faults that FAULTS_SEED draws.
func TestEveryFault(t *testing.T) {
	if os.Getenv("FAULTS_FOR") == "" {
		return // make faults sets it
	}
	lasts, seed := settings(t)
	t.Logf("FAULTS_SEED=%d FAULTS_FOR=%s", seed, lasts)
	s := start(t, seed, 6, 0)
	s.run(seed, lasts)
	s.load.Stop()
	s.load.check(t, s.client, s.fixture)
	t.Logf("\n%s", s.table())
}

// The short form: always the same faults, few clients, and bounds of time that a busy
// machine keeps.
func TestAFewFaults(t *testing.T) {
	if os.Getenv("FAULTS_FOR") != "" {
		return
	}
	const seed = 4
	s := start(t, seed, 2, 20*time.Second)
	s.runFew(seed, "process killed", "process stopped", "cut network", "Redis wiped")
	s.load.Stop()
	s.load.check(t, s.client, s.fixture)
	t.Logf("\n%s", s.table())
}
