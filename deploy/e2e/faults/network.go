package faults

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"

	"github.com/doorward/doorward/deploy/e2e/harness"
)

// link is the way from one part of the deployment to another.
type link struct{ from, to string }

// network is a proxy on each way between two parts.
type network struct {
	server *toxiproxy.ApiServer

	mu         sync.Mutex
	proxies    map[link]*toxiproxy.Proxy
	redirected map[string]string // address of a part that is elsewhere than at first
}

func newNetwork() *network {
	return &network{
		server:  toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop()),
		proxies: map[link]*toxiproxy.Proxy{}, redirected: map[string]string{},
	}
}

// route is the harness.Route of a deployment whose parts find each other by the
// proxies.
func (n *network) route(from, to, address string) (string, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	way := link{from, to}
	if proxy, ok := n.proxies[way]; ok {
		return proxy.Listen, nil
	}
	if now, ok := n.redirected[to]; ok {
		address = now
	}
	listen := harness.FreeAddress()
	proxy := toxiproxy.NewProxy(n.server, from+" to "+to, listen, address)
	if err := proxy.Start(); err != nil {
		return "", fmt.Errorf("start the proxy from %s to %s: %w", from, to, err)
	}
	n.proxies[way] = proxy
	return proxy.Listen, nil
}

// each does something to the proxies of the ways that match.
func (n *network) each(match func(link) bool, do func(*toxiproxy.Proxy) error) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	var errs []error
	for way, proxy := range n.proxies {
		if match(way) {
			errs = append(errs, do(proxy))
		}
	}
	return errors.Join(errs...)
}

// between matches the ways between two parts, in both directions.
func between(a, b string) func(link) bool {
	return func(way link) bool { return way == link{a, b} || way == link{b, a} }
}

// of matches all ways of a part.
func of(part string) func(link) bool {
	return func(way link) bool { return way.from == part || way.to == part }
}

func to(part string) func(link) bool { return func(way link) bool { return way.to == part } }

// addToxic adds a fault of toxiproxy's to links, in both directions.
func (n *network) addToxic(match func(link) bool, kind, attributes string) error {
	return n.each(match, func(proxy *toxiproxy.Proxy) error {
		for _, stream := range []string{"upstream", "downstream"} {
			text := fmt.Sprintf(`{"name": %[1]q, "type": %[2]q, "stream": %[1]q, "attributes": %[3]s}`, stream, kind, attributes)
			if _, err := proxy.Toxics.AddToxicJson(strings.NewReader(text)); err != nil {
				return err
			}
		}
		return nil
	})
}

// slow delays what passes by so many milliseconds, more or less.
func (n *network) slow(match func(link) bool, milliseconds, jitter int) error {
	return n.addToxic(match, "latency", fmt.Sprintf(`{"latency": %d, "jitter": %d}`, milliseconds, jitter))
}

// cut lets nothing pass, and answers nothing: connections hang, new ones too.
func (n *network) cut(match func(link) bool) error {
	return n.addToxic(match, "timeout", `{"timeout": 0}`)
}

// restore removes the faults. Connections that were cut are closed by it.
func (n *network) restore(ctx context.Context, match func(link) bool) error {
	return n.each(match, func(proxy *toxiproxy.Proxy) error {
		proxy.Toxics.ResetToxics(ctx)
		return nil
	})
}

// refuse closes the ports of ways, as those of a process that has ended are, and
// its connections; accept opens them again.
func (n *network) refuse(match func(link) bool) error {
	return n.each(match, func(proxy *toxiproxy.Proxy) error {
		proxy.Stop()
		return nil
	})
}

func (n *network) accept(match func(link) bool) error {
	return n.each(match, func(proxy *toxiproxy.Proxy) error {
		if proxy.Enabled {
			return nil
		}
		return proxy.Start()
	})
}

// redirect leads the ways to a part to another address, later ones too.
func (n *network) redirect(part, address string) error {
	n.mu.Lock()
	n.redirected[part] = address
	n.mu.Unlock()
	return n.each(to(part), func(proxy *toxiproxy.Proxy) error {
		return proxy.Update(&toxiproxy.Proxy{Listen: proxy.Listen, Upstream: address, Enabled: true})
	})
}
