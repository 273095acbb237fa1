package gateway

import "github.com/doorward/doorward/pkg/href"

// page writes a page of the gateway's own.
type page func(*Gateway, *exchange) error

// ownPages are the pages of the routes whose owner is the gateway.
func ownPages() map[string]page {
	return map[string]page{}
}

func hsts(base href.Base) string { return "" }

func (g *Gateway) secureTransport(x *exchange) {}
