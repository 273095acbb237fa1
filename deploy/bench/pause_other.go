//go:build !linux

package main

import "time"

// pause is as exact as the runtime's timers.
func pause(length time.Duration) { <-time.After(length) }
