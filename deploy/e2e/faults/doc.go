// Package faults breaks one part after another of a distributed deployment while
// clients use it, and checks what the clients were promised. schedule.go draws the
// faults and runs them, faults.go has their list, network.go, clock.go and
// machine.go have the means, load.go the clients, and promises.go what is checked.
// make faults runs it; docs/faults.md says how, and what came of it.
package faults
