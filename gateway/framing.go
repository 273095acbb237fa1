package gateway

import (
	"bytes"
	"slices"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/rest"
)

// What is read of a request, and for how long (resolutions, section 13.2).
const (
	maxURL  = 16 << 10
	maxForm = 64 << 10
	// maxStranger is the largest body that is read before the sender has shown
	// a good API key: memory is not lent to strangers.
	maxStranger = 64 << 10

	headerTimeout = 10 * time.Second // for a TLS handshake, and again for the headers
	bodyTimeout   = time.Minute      // for headers and body
	writeTimeout  = time.Minute      // for a client to take its answer
)

// admit bounds what the server reads and for how long.
func (g *Gateway) admit(server *fasthttp.Server) {
	server.ReadTimeout, server.WriteTimeout = headerTimeout, writeTimeout
	server.SecureErrorLogMessage = true // else errors quote headers
	server.CloseOnShutdown = true
	known := g.HTTP.Config().RequestMethods
	server.HeaderReceived = func(h *fasthttp.RequestHeader) fasthttp.RequestConfig {
		if !slices.Contains(known, string(h.Method())) {
			h.SetMethod(fiber.MethodPut) // which no path offers: 405, or 401 and 404 before it
		}
		g.releaseBody(h) // of the request before, whose place in memory this has
		limit, _ := g.bodyLimit(h)
		return fasthttp.RequestConfig{ReadTimeout: bodyTimeout, MaxRequestBodySize: limit}
	}
}

// bodyLimit gives how large the body of a request may be, judged by its
// headers alone, and the refusal of one that is larger.
func (g *Gateway) bodyLimit(h *fasthttp.RequestHeader) (int, error) {
	if isForm(h.ContentType()) {
		return maxForm, apierr.TooLarge.Because("a form may have %d bytes", maxForm)
	}
	const inChunks = -1
	if announced := h.ContentLength(); announced != inChunks && announced <= maxStranger {
		return maxStranger, apierr.TooLarge
	}
	if err := g.admitBody(h); err != nil {
		return maxStranger, err
	}
	return rest.MaxBody, apierr.TooLarge.Because("a body may have %d bytes", rest.MaxBody)
}

func isForm(contentType []byte) bool {
	kind, _, _ := bytes.Cut(contentType, []byte{';'})
	return bytes.EqualFold(bytes.TrimSpace(kind), []byte(fiber.MIMEApplicationForm))
}

// frame refuses a request whose headers two readers could take for different
// requests (RFC 9112, section 11.2), and a compressed body, whose true size
// nobody checked.
func (g *Gateway) checkFraming(x *exchange) error {
	h := &x.Request().Header
	if c, ok := x.Context().Conn().(*conn); !wellFramed(h) || ok && c.headers.folded {
		x.Context().SetConnectionClose()
		return apierr.BadRequest.Because("the headers are ambiguous: send one Host, one of Content-Length and Transfer-Encoding: chunked, no folded lines, no bare carriage return or line feed")
	}
	if encoding := h.Peek(fiber.HeaderContentEncoding); len(encoding) > 0 && !bytes.EqualFold(encoding, []byte("identity")) {
		return apierr.ContentType.Because("send the body without Content-Encoding")
	}
	return nil
}

func wellFramed(h *fasthttp.RequestHeader) bool {
	var hosts, lengths, encodings int
	for line := range bytes.Lines(h.RawHeaders()) {
		name, value, colon := bytes.Cut(line, []byte{':'})
		switch {
		case line[0] == ' ' || line[0] == '\t' || bytes.IndexByte(line, '\r') != len(line)-2 || bytes.IndexByte(line, 0) >= 0:
			return false
		case !colon:
			continue
		case len(name) == 4 && bytes.EqualFold(name, []byte("host")):
			hosts++
		case len(name) == 14 && bytes.EqualFold(name, []byte("content-length")):
			lengths++
		case len(name) == 17 && bytes.EqualFold(name, []byte("transfer-encoding")):
			encodings++
			// Other white space than these is part of the word, and not everybody
			// takes it for the same.
			if !bytes.EqualFold(bytes.Trim(value, " \t\r\n"), []byte("chunked")) {
				return false
			}
		}
	}
	return hosts == 1 && lengths+encodings <= 1
}

// header gives the value of a header as it was received, several joined by
// commas. The name is in lower case. What proxies say is read so: the server adds
// the trailers of a body in chunks, which the client writes, to its own list.
func header(raw []byte, wanted string) (value string, found bool) {
	for line := range bytes.Lines(raw) {
		name, text, colon := bytes.Cut(line, []byte{':'})
		if !colon || len(name) != len(wanted) || !strings.EqualFold(string(name), wanted) {
			continue
		}
		if found {
			value += ","
		}
		value, found = value+string(bytes.TrimSpace(text)), true
	}
	return value, found
}

// secure refuses what came to the load balancer in plain. Only the nearest
// proxy is believed: the last entry. Without a proxy the listener refuses it.
func (g *Gateway) requireTLS(x *exchange) error {
	if !g.cfg.Proxied {
		return nil
	}
	told, _ := header(x.Request().Header.RawHeaders(), "x-forwarded-proto")
	if last := told[strings.LastIndexByte(told, ',')+1:]; !strings.EqualFold(strings.TrimSpace(last), "https") {
		return g.refused.as("plain_http", plainHTTP)
	}
	return nil
}

// plainHTTP is what a client hears that does not use TLS.
var plainHTTP = apierr.Forbidden.Because("plain HTTP is not served; send the request to the same address with https://")

// locate finds the path in the table.
func (g *Gateway) locate(x *exchange) error {
	target := x.Request().Header.RequestURI()
	if len(target) > maxURL {
		return g.refused.as("too_large", apierr.TooLarge.Because("a URL may have %d bytes", maxURL))
	}
	target, ok := origin(target)
	if !ok {
		return apierr.BadRequest.Because("the request target is not a path with a query")
	}
	path, query, _ := bytes.Cut(target, []byte{'?'})
	x.query = query
	x.target, ok = spell(x.target, path)
	x.path = len(x.target)
	x.managed = underV1(x.target)
	if ok {
		x.route = g.router.match(x.target)
	}
	if x.route == nil {
		rest.SetRoute(x.Ctx, "none")
	} else {
		rest.SetRoute(x.Ctx, x.route.pattern)
	}
	x.method = string(x.Request().Header.Method())
	return nil
}
