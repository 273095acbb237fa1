package harness

import (
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
)

// Ports are chosen below the range that the kernel uses for outgoing connections
// (ephemeral ports), so that the port of a killed daemon is still free at its next start.
const (
	firstPort = 20000
	lastPort  = 31999
)

var ports = struct {
	sync.Mutex
	taken map[int]bool
}{taken: map[int]bool{}}

// FreePort returns a port of the loopback interface that nobody listens on and
// that this process has not handed out before. Where it finds none in 200 tries, it
// returns one that is taken: what is started there says so.
func FreePort() (port int) {
	ports.Lock()
	defer ports.Unlock()
	for range 200 {
		if port = firstPort + rand.IntN(lastPort-firstPort+1); ports.taken[port] {
			continue
		}
		if listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port))); err == nil {
			_ = listener.Close() // nothing was accepted
			break
		}
	}
	ports.taken[port] = true
	return port
}

// FreeAddress is a free port of 127.0.0.1 with its host.
func FreeAddress() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(FreePort())) }
