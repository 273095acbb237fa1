package gateway

import (
	"bytes"
	"strings"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"github.com/doorward/doorward/gateway/connection"
	"github.com/doorward/doorward/pkg/apierr"
)

// checkFraming is the middleware that prevents request smuggling: it refuses a request whose
// headers two HTTP parsers could take for different requests (RFC 9112, section 11.2). It also
// refuses a compressed body, because the limits are those of the decompressed size.
func (g *Gateway) checkFraming(rc *requestContext) error {
	h := &rc.Request().Header
	if c, ok := rc.Context().Conn().(*connection.Conn); !wellFramed(h) || ok && c.HasFoldedLine() {
		rc.Context().SetConnectionClose()
		return apierr.BadRequest.Because("the headers are ambiguous: send one Host, a name with or without a port, " +
			"one of Content-Length and Transfer-Encoding: chunked, no blank in the name of a header, no folded " +
			"lines, no bare carriage return or line feed")
	}
	encoding := h.Peek(fiber.HeaderContentEncoding)
	if len(encoding) > 0 && !bytes.EqualFold(encoding, []byte("identity")) {
		return apierr.ContentType.Because("send the body without Content-Encoding")
	}
	return nil
}

// wellFramed reports whether the headers have one meaning only: one valid Host, at most one of
// Content-Length and Transfer-Encoding, no name with a blank, and no line that is folded or ends in a
// bare line feed.
func wellFramed(h *fasthttp.RequestHeader) bool {
	var hosts, lengths, encodings int
	for line := range bytes.Lines(h.RawHeaders()) {
		name, value, colon := bytes.Cut(line, []byte{':'})
		switch {
		case line[0] == ' ' || line[0] == '\t' || bytes.IndexByte(line, '\r') != len(line)-2 ||
			bytes.IndexByte(line, 0) >= 0:
			return false
		case !colon:
			continue
		case bytes.IndexByte(name, ' ') >= 0: // fasthttp refuses all other characters that a name cannot have
			return false
		case len(name) == 4 && bytes.EqualFold(name, []byte("host")):
			if hosts++; !isHost(bytes.TrimSpace(value)) {
				return false
			}
		case len(name) == 14 && bytes.EqualFold(name, []byte("content-length")):
			lengths++
		case len(name) == 17 && bytes.EqualFold(name, []byte("transfer-encoding")):
			encodings++
			// HTTP parsers disagree about other white space around the word.
			if !bytes.EqualFold(bytes.Trim(value, " \t\r\n"), []byte("chunked")) {
				return false
			}
		}
	}
	return hosts == 1 && lengths+encodings <= 1
}

// hostCharacters are the characters of a host name, an IP address and a port.
const hostCharacters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~:[]"

// isHost reports whether a Host has valid characters only (RFC 9112, section 3.2). In a link with
// an @ in its host, for example, a browser would take the part behind the @ for the host.
func isHost(host []byte) bool { return len(bytes.Trim(host, hostCharacters)) == 0 }

// header returns the value of a header as it was received; the values of a repeated header are
// joined by commas. wanted is in lower case. The headers of proxies are read by this function
// and not from the header list of the server, to which the server adds the trailers of a chunked
// body, which the client may forge.
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
