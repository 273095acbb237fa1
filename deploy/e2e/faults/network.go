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

// link is the connection from one part of the deployment to another.
type link struct{ from, to string }

// network has a proxy (toxiproxy) on each link.
type network struct {
	server *toxiproxy.ApiServer

	mu         sync.Mutex
	proxies    map[link]*toxiproxy.Proxy
	redirected map[string]string // new address of a part that has moved
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
	l := link{from, to}
	if proxy, ok := n.proxies[l]; ok {
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
	n.proxies[l] = proxy
	return proxy.Listen, nil
}

// each calls do for the proxies of the links that match.
func (n *network) each(match func(link) bool, do func(*toxiproxy.Proxy) error) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	var errs []error
	for l, proxy := range n.proxies {
		if match(l) {
			errs = append(errs, do(proxy))
		}
	}
	return errors.Join(errs...)
}

// between matches the links between two parts, in both directions.
func between(a, b string) func(link) bool {
	return func(l link) bool { return l == link{a, b} || l == link{b, a} }
}

// allOf matches all links of a part.
func allOf(part string) func(link) bool {
	return func(l link) bool { return l.from == part || l.to == part }
}

// to matches the links to a part.
func to(part string) func(link) bool { return func(l link) bool { return l.to == part } }

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

// slow delays all traffic by so many milliseconds, give or take the jitter.
func (n *network) slow(match func(link) bool, milliseconds, jitter int) error {
	return n.addToxic(match, "latency", fmt.Sprintf(`{"latency": %d, "jitter": %d}`, milliseconds, jitter))
}

// cut drops all traffic: existing and new connections hang.
func (n *network) cut(match func(link) bool) error {
	return n.addToxic(match, "timeout", `{"timeout": 0}`)
}

// restore removes the faults. It closes connections that were cut.
func (n *network) restore(ctx context.Context, match func(link) bool) error {
	return n.each(match, func(proxy *toxiproxy.Proxy) error {
		proxy.Toxics.ResetToxics(ctx)
		return nil
	})
}

// refuse closes the ports and the connections of links, as if the process there had ended.
// accept opens the ports again.
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

// redirect connects the links to a part, also later ones, to another address.
func (n *network) redirect(part, address string) error {
	n.mu.Lock()
	n.redirected[part] = address
	n.mu.Unlock()
	return n.each(to(part), func(proxy *toxiproxy.Proxy) error {
		return proxy.Update(&toxiproxy.Proxy{Listen: proxy.Listen, Upstream: address, Enabled: true})
	})
}
