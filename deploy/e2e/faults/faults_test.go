package faults

import (
	"os"
	"testing"
)

// Runs for FAULTS_FOR, with the faults that FAULTS_SEED draws.
func TestEveryFault(t *testing.T) {
	if os.Getenv("FAULTS_FOR") == "" {
		return // make faults sets it
	}
	lasts, seed := settings(t)
	t.Logf("FAULTS_SEED=%d FAULTS_FOR=%s", seed, lasts)
	s := start(t, seed, 6)
	s.run(seed, lasts)
	s.load.end()
	s.load.check(t, s.client, s.site)
	t.Logf("\n%s", s.table())
}
