package app_test

import (
	"errors"
	"net"
	"testing"
	"time"
)

// listen serves on a free port of loopback until the test ends.
func listen(t testing.TB, serve func(net.Listener) error, stop func() error) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() { done <- serve(listener) }()
	t.Cleanup(func() {
		if err := errors.Join(stop(), <-done); err != nil {
			t.Error(err)
		}
	})
	return listener.Addr().String()
}

// await waits until it is so.
func await(t testing.TB, what string, so func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(30 * time.Second)
	for !so() {
		select {
		case <-tick.C:
		case <-limit:
			t.Fatalf("timeout: waited for %s", what)
		}
	}
}
