package harness

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
)

// Ports are taken from below the range that the kernel uses for outgoing
// connections: a daemon that is killed must find its port free when it starts
// again.
const (
	firstPort = 20000
	lastPort  = 31999
)

var ports = struct {
	sync.Mutex
	taken map[int]bool
}{taken: map[int]bool{}}

// FreePort returns a port of the loopback interface that nobody listens on and
// that this process has not handed out before.
func FreePort() (int, error) {
	ports.Lock()
	defer ports.Unlock()
	for range 200 {
		port := firstPort + rand.IntN(lastPort-firstPort+1)
		if ports.taken[port] {
			continue
		}
		listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			continue
		}
		if err := listener.Close(); err != nil {
			return 0, fmt.Errorf("try a port: %w", err)
		}
		ports.taken[port] = true
		return port, nil
	}
	return 0, fmt.Errorf("found no free port between %d and %d in 200 tries", firstPort, lastPort)
}

// FreeAddress is a port of 127.0.0.1 that nobody listens on, with its host. It is
// not handed out again by this process.
func FreeAddress() (string, error) {
	port, err := FreePort()
	if err != nil {
		return "", err
	}
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), nil
}
