// Package faults is the fault injection test (chaos test): it breaks one part after
// another of a distributed deployment while clients use it, and checks that nothing
// acknowledged is lost. schedule.go draws the faults and runs them, faults.go has their
// list, network.go, clock.go and host.go (disks, memory) inject them, load.go is the
// clients, and checker.go has the invariants. make faults runs the test; docs/faults.md
// says how, and has the results.
package faults
