// Package rpc is how services call each other (service to service): Call and Serve send the
// methods of a contract (pkg/api) as JSON over HTTP, and an Upstream sends requests to the replicas
// of a service (client-side load balancing, failover).
package rpc

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/doorward/doorward/pkg/apierr"
)

const (
	// requestTimeout is the timeout of a call whose context has no deadline.
	requestTimeout = 15 * time.Second
	// downTime is how long a replica that failed gets no request while other replicas
	// answer.
	downTime = time.Second
	// drainTime is how long a replica that answers Connection: close gets no request: it
	// drains and will end.
	drainTime = 10 * time.Second
)

// Upstream is a service with one or more replicas. A request goes to the replica with the fewest
// requests in flight. A replica that failed gets no request for downTime (passive health check, outlier
// detection, in place of a circuit breaker), and a request that was not sent is sent to another replica.
// Each address of a host name is a replica (resolve.go).
//
// fasthttp's LBClient does less: it does not retry, and a replica that failed only counts as having
// one more request in flight for each failure, so that it still gets requests.
type Upstream struct {
	Name       string
	replicas   atomic.Pointer[[]*replica]
	roundRobin atomic.Uint32
	resolver   resolver
}

type replica struct {
	client    *fasthttp.HostClient
	host      string
	downUntil atomic.Int64
}

// NewUpstream makes the upstream of a service from the addresses of its replicas, http://host:port,
// or https:// where they have a certificate for the host that the system trusts.
func NewUpstream(name string, addresses []string) (*Upstream, error) {
	u := &Upstream{Name: name, resolver: resolver{lookup: lookupIPv4, now: time.Now}}
	var replicas []*replica
	for _, address := range addresses {
		parsed, err := url.Parse(address)
		if err != nil || parsed.Host == "" ||
			parsed.Scheme != "http" && (parsed.Scheme != "https" || parsed.Port() == "") {
			return nil, fmt.Errorf("the address %q of the %s service has not the form http://host:port or "+
				"https://host:port", address, name)
		}
		s := &service{host: parsed.Host, name: parsed.Hostname(), port: parsed.Port(),
			encrypted: parsed.Scheme == "https"}
		if s.port == "" {
			s.port = "80"
		}
		// Until a name is looked up it is the address of one replica.
		s.replicas = []*replica{newReplica(s.host, s)}
		u.resolver.named = u.resolver.named || net.ParseIP(s.name) == nil
		u.resolver.services = append(u.resolver.services, s)
		replicas = append(replicas, s.replicas...)
	}
	if len(replicas) == 0 {
		return nil, fmt.Errorf("the %s service has no address", name)
	}
	u.replicas.Store(&replicas)
	return u, nil
}

// newReplica makes the replica of a service at an address, host:port.
func newReplica(address string, s *service) *replica {
	r := &replica{host: s.host, client: &fasthttp.HostClient{
		Addr: address, MaxConns: 4096, MaxIdleConnDuration: 10 * time.Second,
		ReadBufferSize: 64 << 10, MaxIdemponentCallAttempts: 1,
		NoDefaultUserAgentHeader: true, DisableHeaderNamesNormalizing: false, DisablePathNormalizing: true,
	}}
	if s.encrypted {
		r.client.Dial = func(address string) (net.Conn, error) { return dialTLS(address, s.name) }
	}
	return r
}

// dialTLS connects with TLS to a server whose certificate is for a name. A failed handshake is returned
// as a failure to connect, because no request was sent yet.
func dialTLS(address, name string) (net.Conn, error) {
	plain, err := fasthttp.Dial(address)
	if err != nil {
		return nil, err
	}
	conn := tls.Client(plain, &tls.Config{ServerName: name, MinVersion: tls.VersionTLS13})
	ctx, cancel := context.WithTimeout(context.Background(), fasthttp.DefaultDialTimeout)
	defer cancel()
	if err := conn.HandshakeContext(ctx); err != nil {
		return nil, errors.Join(&net.OpError{Op: "dial", Net: "tcp", Err: err}, plain.Close())
	}
	return conn, nil
}

// Do sends a request and reads its answer. It retries any request on another replica when no
// connection could be made, and a repeatable (idempotent) request also when the connection breaks.
// It returns apierr.Unavailable when no replica answers.
func (u *Upstream) Do(ctx context.Context, request *fasthttp.Request, response *fasthttp.Response,
	repeatable bool) error {
	deadline, bounded := ctx.Deadline()
	if !bounded {
		deadline = time.Now().Add(requestTimeout)
	}
	var err error
	// One attempt more than there are replicas: a single replica may only have closed an
	// idle connection.
	for range len(*u.replicas.Load()) + 1 {
		r := u.pickReplica()
		request.SetHost(r.host)
		err = r.client.DoDeadline(request, response, deadline)
		if err == nil {
			if response.ConnectionClose() {
				r.downUntil.Store(time.Now().Add(drainTime).UnixNano())
				r.client.CloseIdleConnections()
			} else if r.downUntil.Load() != 0 {
				r.downUntil.Store(0)
			}
			return nil
		}
		refused, broken := isConnectError(err), isConnectionBroken(err)
		if refused || broken {
			// Its idle connections are broken too; the next attempt goes to another replica.
			r.downUntil.Store(time.Now().Add(downTime).UnixNano())
			r.client.CloseIdleConnections()
		}
		if !refused && !(broken && repeatable) {
			break
		}
	}
	return fmt.Errorf("%w (%s: %w)", apierr.Unavailable.Because(
		"the %s service does not answer; repeat the request later",
		u.Name).WithRetryAfter(time.Second), u.Name, err)
}

// pickReplica returns the replica with the fewest requests in flight. If all replicas are down
// (downUntil), it returns the replica that is up again first.
func (u *Upstream) pickReplica() *replica {
	if u.resolver.named {
		u.refresh()
	}
	replicas := *u.replicas.Load()
	if len(replicas) == 1 {
		return replicas[0]
	}
	now := time.Now().UnixNano()
	first := int(u.roundRobin.Add(1))
	var best *replica
	var least int64
	for i := range replicas {
		r := replicas[(first+i)%len(replicas)]
		cost := int64(r.client.PendingRequests())
		if until := r.downUntil.Load(); until > now {
			cost = until // more than any number of requests
		}
		if best == nil || cost < least {
			best, least = r, cost
		}
	}
	return best
}

// isConnectError reports whether no connection could be made.
func isConnectError(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial" || errors.Is(err, fasthttp.ErrDialTimeout)
}

// isConnectionBroken reports whether the connection broke during the request.
func isConnectionBroken(err error) bool {
	var op *net.OpError
	return errors.Is(err, fasthttp.ErrConnectionClosed) || errors.Is(err, io.EOF) ||
		errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.As(err, &op) && !op.Timeout()
}
