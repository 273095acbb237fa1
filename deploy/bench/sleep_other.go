//go:build !linux

package main

import "time"

// sleep is as exact as the runtime's timers.
func sleep(length time.Duration) { time.Sleep(length) }
