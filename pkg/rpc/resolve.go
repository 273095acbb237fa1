package rpc

import (
	"context"
	"log/slog"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// lookupInterval is the age from which a request makes the addresses of a name be looked up again,
	// beside it. A replica that is added gets requests that much later.
	lookupInterval = 5 * time.Second
	// lookupMaxAge is the age from which a request waits for that: after so long a pause its
	// replicas may all have been replaced.
	lookupMaxAge = time.Minute
	// lookupTimeout bounds the lookups of one round.
	lookupTimeout = 2 * time.Second
)

// service is an address of a service as it is configured. A host name can stand for several replicas:
// a headless Service of Kubernetes has an address for each Pod that is ready, a service of compose one
// for each container.
type service struct {
	host      string // host:port, sent as Host
	name      string // that certificates are for
	port      string
	encrypted bool
	replicas  []*replica // guarded by resolver.running
}

// resolver is the DNS discovery of an Upstream: when its names were looked up, and how.
type resolver struct {
	services []*service
	named    bool // whether one of services is a host name
	running  sync.Mutex
	last     atomic.Int64 // in nanoseconds, of now
	lookup   func(ctx context.Context, name string) (addresses []string, err error)
	now      func() time.Time
}

// lookupIPv4 returns the IPv4 addresses of a name: a replica of a network with both
// families has an address in each, and is one replica.
func lookupIPv4(ctx context.Context, name string) (addresses []string, err error) {
	found, err := net.DefaultResolver.LookupNetIP(ctx, "ip4", name)
	for _, address := range found {
		addresses = append(addresses, address.Unmap().String())
	}
	return addresses, err
}

// refresh looks the names up again that were looked up lookupInterval ago.
func (u *Upstream) refresh() {
	age := u.age()
	if age < lookupInterval {
		return
	}
	if age < lookupMaxAge {
		if u.resolver.running.TryLock() {
			go u.resolve()
		}
		return
	}
	u.resolver.running.Lock()
	if u.age() < lookupInterval { // another request did it meanwhile
		u.resolver.running.Unlock()
		return
	}
	u.resolve()
}

func (u *Upstream) age() time.Duration {
	return time.Duration(u.resolver.now().UnixNano() - u.resolver.last.Load())
}

// resolve looks all names up, and unlocks resolver.running. The replicas of a name that cannot be
// looked up stay. One that is gone ends the requests that it has.
func (u *Upstream) resolve() {
	defer u.resolver.running.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), lookupTimeout)
	defer cancel()
	var all []*replica
	for _, s := range u.resolver.services {
		if net.ParseIP(s.name) == nil {
			addresses, err := u.resolver.lookup(ctx, s.name)
			if err != nil {
				slog.Warn("lookup of a service failed, its last addresses are used", "service", u.Name, "error", err)
			} else {
				s.update(addresses)
			}
		}
		all = append(all, s.replicas...)
	}
	u.replicas.Store(&all)
	u.resolver.last.Store(u.resolver.now().UnixNano())
}

// update makes a replica of each address. Those that are there already keep their connections.
func (s *service) update(addresses []string) {
	var replicas []*replica
	for _, address := range addresses {
		address = net.JoinHostPort(address, s.port)
		i := slices.IndexFunc(s.replicas, func(r *replica) bool { return r.client.Addr == address })
		if i >= 0 {
			replicas = append(replicas, s.replicas[i])
			continue
		}
		replicas = append(replicas, newReplica(address, s))
	}
	for _, r := range s.replicas {
		if !slices.Contains(replicas, r) {
			r.client.CloseIdleConnections()
		}
	}
	s.replicas = replicas
}
