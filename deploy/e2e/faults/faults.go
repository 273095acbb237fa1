package faults

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/Shopify/toxiproxy/v2"

	"github.com/doorward/doorward/deploy/e2e"
	"github.com/doorward/doorward/deploy/e2e/harness"
	"github.com/doorward/doorward/pkg/deployment"
	"github.com/doorward/doorward/pkg/redisclient"
)

// fault is one kind of fault that is injected (chaos test). draw chooses what breaks and
// for how long, by the random numbers of the schedule alone.
type fault struct {
	name string
	draw func(*suite, *rand.Rand) event
}

// event is one fault of a schedule: begin injects it, and end repairs it.
type event struct {
	fault  string
	target string
	lasts  time.Duration
	begin  func(context.Context) error
	end    func(context.Context) error
}

// allFaults are the faults that a schedule draws from.
var allFaults = []fault{
	{"process killed (kill -9), started again", killedProcess},
	{"process stopped (SIGSTOP), continued", stoppedProcess},
	{"slow network between two parts", slowLink},
	{"cut network between two parts", cutLink},
	{"process cut off from everything", isolatedProcess},
	{"clock of a process jumps by 10 min", jumpedClock},
	{"memory limit hit", memoryLimit},
	{"certificate of a gateway expired", expiredCertificate},
	{"Redis wiped (FLUSHALL)", func(s *suite, _ *rand.Rand) event {
		return event{target: "redis", begin: s.flushRedis, end: func(context.Context) error { return nil }}
	}},
	{"Redis killed, started again empty", func(s *suite, r *rand.Rand) event {
		return killed(s, r, "redis", s.deployment.Redis)
	}},
	{"Kafka killed, started again", func(s *suite, r *rand.Rand) event {
		return killed(s, r, "kafka", s.deployment.Kafka)
	}},
	{"Kafka stopped (SIGSTOP), continued", func(s *suite, r *rand.Rand) event {
		return stopped(r, "kafka", s.deployment.Kafka)
	}},
	{"PostgreSQL killed, started again", func(s *suite, r *rand.Rand) event { return killed(s, r, "postgres", s.database) }},
	{"PostgreSQL stopped (SIGSTOP), continued", func(s *suite, r *rand.Rand) event { return stopped(r, "postgres", s.database) }},
	{"PostgreSQL killed, its standby promoted", promotedStandby},
	{"disk of PostgreSQL full", func(s *suite, r *rand.Rand) event { return fullDisk(s, r, "postgres", s.database) }},
	{"disk of Kafka full", func(s *suite, r *rand.Rand) event { return fullDisk(s, r, "kafka", s.deployment.Kafka) }},
}

// seconds draws a time.
func seconds(r *rand.Rand, least, most int) time.Duration {
	return time.Duration(least+r.IntN(most-least+1)) * time.Second
}

// server is a process that can be broken and comes back with its data.
type server interface {
	Start(context.Context) error
	Kill() error
	Signal(os.Signal) error
	Ended() bool
}

// process draws one of the product's processes.
func (s *suite) process(r *rand.Rand) *harness.Daemon {
	services := append(slices.Clone(deployment.Services), "gateway")
	return s.deployment.Replica(services[r.IntN(len(services))], r.IntN(2))
}

// link draws one of the links between two parts.
func (s *suite) link(r *rand.Rand) link {
	s.network.mu.Lock()
	defer s.network.mu.Unlock()
	links := slices.SortedFunc(maps.Keys(s.network.proxies), func(a, b link) int {
		return strings.Compare(a.from+" "+a.to, b.from+" "+b.to)
	})
	return links[r.IntN(len(links))]
}

func killedProcess(s *suite, r *rand.Rand) event {
	process := s.process(r)
	return killed(s, r, process.Name, process)
}

// killed kills a process and starts it again. Meanwhile the ports of its proxies are closed too.
func killed(s *suite, r *rand.Rand, name string, process server) event {
	return event{
		target: name, lasts: seconds(r, 2, 8),
		begin: func(context.Context) error { return errors.Join(s.network.refuse(to(name)), process.Kill()) },
		end: func(ctx context.Context) error {
			return errors.Join(process.Start(ctx), s.network.accept(to(name)))
		},
	}
}

func stoppedProcess(s *suite, r *rand.Rand) event {
	process := s.process(r)
	return stopped(r, process.Name, process)
}

func stopped(r *rand.Rand, name string, process server) event {
	return event{
		target: name, lasts: seconds(r, 5, 15),
		begin: func(context.Context) error { return process.Signal(syscall.SIGSTOP) },
		end:   func(context.Context) error { return process.Signal(syscall.SIGCONT) },
	}
}

func slowLink(s *suite, r *rand.Rand) event {
	l := s.link(r)
	slow := func(match func(link) bool) error { return s.network.slow(match, 200, 100) }
	return s.onNetwork(r, l.from+" to "+l.to, between(l.from, l.to), slow)
}

func cutLink(s *suite, r *rand.Rand) event {
	l := s.link(r)
	return s.onNetwork(r, l.from+" to "+l.to, between(l.from, l.to), s.network.cut)
}

func isolatedProcess(s *suite, r *rand.Rand) event {
	name := s.process(r).Name
	return s.onNetwork(r, name, allOf(name), s.network.cut)
}

func (s *suite) onNetwork(r *rand.Rand, target string, match func(link) bool, begin func(func(link) bool) error) event {
	return event{
		target: target, lasts: seconds(r, 8, 15),
		begin: func(context.Context) error { return begin(match) },
		end:   func(ctx context.Context) error { return s.network.restore(ctx, match) },
	}
}

func jumpedClock(s *suite, r *rand.Rand) event {
	process, by := s.process(r), 10*time.Minute
	if r.IntN(2) == 0 {
		by = -by
	}
	return event{
		target: fmt.Sprintf("%s by %s", process.Name, by), lasts: seconds(r, 8, 15),
		begin: func(context.Context) error {
			s.load.countClockJump()
			return setClock(process.PID(), by)
		},
		end: func(context.Context) error { return setClock(process.PID(), 0) },
	}
}

// memoryAllowed is less than any process of the product needs.
const memoryAllowed = "7M"

// memoryLimit starts a process again with less memory than it needs, and starts it
// again as often as it is killed for it.
func memoryLimit(s *suite, r *rand.Rand) event {
	process := s.process(r)
	var undo func()
	var killed int
	restart := func() error {
		return errors.Join(s.network.refuse(to(process.Name)), process.Kill(), process.Launch(), s.network.accept(to(process.Name)))
	}
	return event{
		target: process.Name, lasts: seconds(r, 8, 12),
		begin: func(ctx context.Context) error {
			killed = oomKills(s.memory)
			undo = process.Wrap(s.memory.Wrapper()...)
			if err := restart(); err != nil {
				return err
			}
			s.duringFault = func() error {
				if process.Ended() {
					return restart()
				}
				return nil
			}
			return nil
		},
		end: func(ctx context.Context) error {
			s.duringFault = nil
			undo()
			s.t.Logf("the kernel killed %s %d times", process.Name, oomKills(s.memory)-killed)
			return errors.Join(s.network.refuse(to(process.Name)), process.Kill(), process.Start(ctx), s.network.accept(to(process.Name)))
		},
	}
}

// expiredCertificate lets the certificate of a running gateway expire.
func expiredCertificate(s *suite, r *rand.Rand) event {
	process := s.deployment.Replica("gateway", r.IntN(2))
	begin := func(ctx context.Context, expires time.Time) error {
		dir := filepath.Join(s.dir, e2e.Unique("certificate"))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		cert, key, err := s.deployment.Authority().IssueUntil(expires, dir, harness.GatewayHosts...)
		if err != nil {
			return err
		}
		if err := errors.Join(s.network.refuse(to(process.Name)), process.Stop(ctx)); err != nil {
			return err
		}
		process.Setenv("DOORWARD_TLS_CERT_FILE="+cert, "DOORWARD_TLS_KEY_FILE="+key)
		return errors.Join(process.Start(ctx), s.network.accept(to(process.Name)))
	}
	return event{
		target: process.Name, lasts: seconds(r, 10, 15),
		begin: func(ctx context.Context) error { return begin(ctx, time.Now().Add(3*time.Second)) },
		end:   func(ctx context.Context) error { return begin(ctx, time.Now().Add(24*time.Hour)) },
	}
}

// promotedStandby kills the primary when a standby has all acknowledged commits, and
// redirects the product's connections to the standby (failover).
func promotedStandby(s *suite, r *rand.Rand) event {
	var standby *harness.Postgres
	return event{
		target: "postgres", lasts: seconds(r, 1, 4),
		begin: func(ctx context.Context) (err error) {
			s.databases++
			dir := filepath.Join(s.disks["postgres"], fmt.Sprint("node", s.databases))
			if standby, err = s.database.Standby(ctx, dir); err != nil {
				return err
			}
			if err := s.database.AwaitStandby(ctx); err != nil {
				return err
			}
			return errors.Join(s.network.refuse(to("postgres")), s.database.Kill())
		},
		end: func(ctx context.Context) error {
			if err := standby.Promote(ctx); err != nil {
				return err
			}
			former := s.database
			s.database = standby
			return errors.Join(s.network.redirect("postgres", standby.Address), former.Remove())
		},
	}
}

func (s *suite) flushRedis(ctx context.Context) error {
	var address string
	if err := s.network.each(to("redis"), func(proxy *toxiproxy.Proxy) error { address = proxy.Upstream; return nil }); err != nil {
		return err
	}
	return harness.InRedis(address, func(client redisclient.Client) error { return client.FlushAll(ctx).Err() })
}

// fullDisk fills the disk of a server. A server that ends because of that is started again,
// and Kafka always: it ends after a failed write, possibly a moment after the disk has space.
func fullDisk(s *suite, r *rand.Rand, name string, process server) event {
	return event{
		target: name, lasts: seconds(r, 8, 15),
		begin: func(context.Context) error { return fillDisk(s.disks[name]) },
		end: func(ctx context.Context) error {
			if err := emptyDisk(s.disks[name]); err != nil {
				return err
			}
			if ended := process.Ended(); ended {
				s.t.Logf("%s ended when its disk was full", name)
			} else if name != "kafka" {
				return nil
			}
			return errors.Join(process.Kill(), process.Start(ctx))
		},
	}
}
