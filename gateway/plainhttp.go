package gateway

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/doorward/doorward/gateway/connection"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/rest"
)

// Listen returns the HTTPS listener (package connection).
// certificate is certificate.Certificate.Current, so that a renewed certificate is used without
// a restart; custom domains have certificates of their own (package domaincertificate). Where certificate
// is nil, a load balancer terminates TLS and the connections are plain.
func (g *Gateway) Listen(plain net.Listener, certificate func() *tls.Certificate) net.Listener {
	cfg := connection.Config{Server: g.HTTP.Server(), PlainHTTPResponse: g.plainHTTPResponse}
	if certificate != nil {
		cfg.Certificate = func(hello *tls.ClientHelloInfo) *tls.Certificate {
			if g.domainCertificates != nil {
				if own := g.domainCertificates.ForHandshake(hello); own != nil {
					return own
				}
			}
			return certificate()
		}
	}
	return connection.Listen(plain, cfg)
}

// plainHTTPResponse is the HTTP response to a client that does not use TLS.
func (g *Gateway) plainHTTPResponse() []byte {
	requestID, base := uuid.NewString(), g.cfg.Common.Base
	err := *plainHTTP
	_ = g.refusals.countAs("plain_http", &err)
	body := err.Body(base.Host()+"/errors/"+strconv.Itoa(err.Code), requestID)
	var out bytes.Buffer
	_, _ = fmt.Fprintf(&out,
		"HTTP/1.1 403 Forbidden\r\nContent-Type: %s\r\nContent-Length: %d\r\n%s: %s\r\nConnection: close\r\n\r\n%s",
		rest.MIME, len(body), g.requestHeader, requestID, body)
	return out.Bytes()
}

// requireTLS is the middleware that refuses a request that came to the load balancer without
// TLS. It reads the entry of X-Forwarded-Proto, or of Forwarded, that the first trusted proxy
// added, counted from the right; of a shorter list the first entry, because proxies further in pass
// it on. Without a proxy the listener refuses connections without TLS.
func (g *Gateway) requireTLS(rc *requestContext) error {
	if !g.cfg.Proxied {
		return nil
	}
	entries := forwardedEntries(rc.Ctx, "x-forwarded-proto", "proto")
	if len(entries) == 0 {
		return g.refusals.countAs("plain_http", plainHTTP.Because(
			"%s; the load balancer has sent neither X-Forwarded-Proto nor Forwarded",
			plainHTTP.Reason))
	}
	if proto := entries[max(0, len(entries)-max(1, g.cfg.TrustedHops))]; !strings.EqualFold(proto, "https") {
		return g.refusals.countAs("plain_http",
			plainHTTP.Because("%s; the load balancer says that the client used %.20q", plainHTTP.Reason, proto))
	}
	return nil
}

// plainHTTP refuses a client that does not use TLS.
var plainHTTP = apierr.Forbidden.Because("plain HTTP is not served; send the request to the same address with https://")
