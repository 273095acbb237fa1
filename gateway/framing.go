package gateway

import (
	"bytes"
	"strings"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"github.com/doorward/doorward/pkg/apierr"
)

// checkFraming prevents request smuggling: it refuses a request whose headers two readers
// could take for different requests (RFC 9112, section 11.2), and a compressed body, whose
// decompressed size nobody has checked.
func (g *Gateway) checkFraming(x *exchange) error {
	h := &x.Request().Header
	if c, ok := x.Context().Conn().(*conn); !wellFramed(h) || ok && c.headers.folded {
		x.Context().SetConnectionClose()
		return apierr.BadRequest.Because("the headers are ambiguous: send one Host, a name with or without a port, one of " +
			"Content-Length and Transfer-Encoding: chunked, no folded lines, no bare carriage return or line feed")
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
			if hosts++; !isHost(bytes.TrimSpace(value)) {
				return false
			}
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

// hostCharacters are those of a name, an IP address and a port.
const hostCharacters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~:[]"

// isHost reports whether a Host has the characters of one alone (RFC 9112, section 3.2):
// behind an @, for one, a browser would look for another.
func isHost(host []byte) bool { return len(bytes.Trim(host, hostCharacters)) == 0 }

// header returns the value of a header as it was received, several joined by
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
