package gateway

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"net/http"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"

	"github.com/doorward/doorward/gateway/connection"
	"github.com/doorward/doorward/gateway/requestpath"
	"github.com/doorward/doorward/pkg/rpc"
)

// An Authorization header is refused or is exactly an id, a colon and a secret.
func FuzzAuthorization(f *testing.F) {
	for _, seed := range []string{"", "a:b", "a", ":", "a:", ":b", "a:b:c", "a b:c", "\x00:\x00", strings.Repeat("x", 900) + ":y"} {
		f.Add([]byte(base64.StdEncoding.EncodeToString([]byte(seed))))
	}
	f.Add([]byte(" QTpC "))
	f.Add([]byte("QTpC=="))
	f.Add([]byte("QTp\nC"))
	f.Fuzz(func(t *testing.T, encoded []byte) {
		var buffer [maxCredentials]byte
		cred, ok := parseBasic(buffer[:0], encoded)
		if !ok {
			return
		}
		plain, err := base64.StdEncoding.DecodeString(strings.Trim(string(encoded), " "))
		if err != nil || string(plain) != string(cred.id)+":"+string(cred.secret) || len(cred.secret) == 0 {
			t.Fatalf("%q returns %q and %q", encoded, cred.id, cred.secret)
		}
		for _, b := range cred.id {
			if b <= ' ' || b >= 0x7f || b == ':' {
				t.Fatalf("%q returns the id %q", encoded, cred.id)
			}
		}
	})
}

// A path that matches is what every other reader takes it for, and none leads
// inside.
func FuzzPath(f *testing.F) {
	for _, seed := range []string{"/v1/accounts/1", "//v1//accounts///1/", "/v1/accounts/..%2f..%2finternal", "/v1/../internal/x", "/client/a/b/c", "/v1/accounts/%2e%2e/x", "/v1/accounts/1?x=/../y", "https://h/v1/accounts/1", "/_mailbox/../internal", "/v1/accounts/%00", "", "*", "/client/a/%252e%252e/x"} {
		f.Add([]byte(seed))
	}
	upstreams := map[string]*rpc.Upstream{}
	for _, owner := range []string{"directory", "application", "oauth", "mfa", "notification", "idsite", "mailbox"} {
		upstreams[owner] = rpc.LocalUpstream(owner, nil)
	}
	r := newRouter(upstreams)
	f.Fuzz(func(t *testing.T, target []byte) {
		target, ok := requestpath.OriginForm(target)
		if !ok {
			return
		}
		path, _, _ := bytes.Cut(target, []byte{'?'})
		spelt, ok := requestpath.Normalize(nil, path)
		if !ok {
			return
		}
		again, ok := requestpath.Normalize(nil, spelt)
		if !ok || !bytes.Equal(again, spelt) {
			t.Fatalf("%q is spelt %q, and that %q", path, spelt, again)
		}
		found := r.match(spelt)
		if found == nil {
			return
		}
		if got := []byte(found.pattern); bytes.Count(got, []byte{'/'}) != bytes.Count(spelt, []byte{'/'}) && !bytes.HasSuffix(got, []byte{'*'}) {
			t.Fatalf("%q matches %s", spelt, found.pattern)
		}
		// A server that decodes and cleans the path, as none of ours does, comes
		// to the same one.
		uri := fasthttp.AcquireURI()
		defer fasthttp.ReleaseURI(uri)
		if err := uri.Parse([]byte("host"), spelt); err != nil {
			return
		}
		if !strings.HasPrefix(string(uri.Path()), "/v1/") && found.access == keyAccess || strings.HasPrefix(string(uri.Path()), rpc.Prefix) ||
			bytes.Count(uri.Path(), []byte{'/'}) != bytes.Count(spelt, []byte{'/'}) {
			t.Fatalf("%q matches %s, but can be read as %q", spelt, found.pattern, uri.Path())
		}
	})
}

// The report of another gateway is read or ignored, whatever it holds.
func FuzzReport(f *testing.F) {
	l := newLimiter(Config{Common: common, Tenant: Limit{1, 1}})
	f.Add(l.encodeUsage())
	_ = l.acquire(f.Context(), tenantSubject(tenantLimit, tenant))
	f.Add(l.encodeUsage())
	f.Add([]byte("short"))
	f.Fuzz(func(t *testing.T, text []byte) {
		_, counts, ok := decodeUsage(text)
		if ok && len(counts)*19 > len(text) {
			t.Fatalf("%d counts in %d bytes", len(counts), len(text))
		}
		for _, n := range counts {
			if n.inFlight < 0 || n.arrived < 0 {
				t.Fatal("a count is negative")
			}
		}
	})
}

// A query keeps what is the service's.
func FuzzQuery(f *testing.F) {
	for _, seed := range []string{"", "a=b", "expand=a&b=c", "_method=PUT", "%65xpand=a", "a=%", "&&", "expand", "a=b&expand=x&_method=DELETE&c"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, query []byte) {
		rest, own, err := splitQuery(nil, query)
		if err != nil {
			return
		}
		if len(rest) > len(query) || own.expand == "" && own.rawExpand != nil {
			t.Fatalf("%q leaves %q and %+v", query, rest, own)
		}
		if left, own, err := splitQuery(nil, rest); err != nil || own.expand != "" || own.method != "" || !bytes.Equal(bytes.Trim(left, "&"), bytes.Trim(rest, "&")) && !bytes.Contains(rest, []byte("&&")) {
			t.Fatalf("%q leaves %q, which leaves %q and %+v, %v", query, rest, left, own, err)
		}
	})
}

// An address that a client or a proxy tells is none, or one that is read again
// as it is written.
func FuzzAddress(f *testing.F) {
	for _, seed := range []string{"", "198.51.100.1", "198.51.100.1:80", "2001:db8::1", "[2001:db8::1]:80", "::ffff:198.51.100.1", "fe80::1%eth0", "[::1%]:1", "1.2.3", "x"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		address, ok := parseAddress(text)
		if !ok {
			return
		}
		if again, ok := parseAddress(address.String()); !ok || again != address || address.Zone() != "" || address.Is4In6() {
			t.Fatalf("%q is %s, and that is %s", text, address, again)
		}
	})
}

// Headers that the gateway takes mean the same request to another reader, the
// standard library's, wherever that takes them too.
func FuzzFrame(f *testing.F) {
	for _, seed := range []string{"Host: a\r\nContent-Length: 5", "Host: a\r\nTransfer-Encoding: chunked", "Host: a\r\nTransfer-Encoding:\tChunked \r\nX: b\rc",
		"Host: a\r\nContent-Length: 5\r\nContent-Length: 6", "Host: a\r\n X: y", "Host : a", "Host: a\nX: y", "host: a\r\nCONTENT-LENGTH: 007", "Host: a\r\nContent-Length: +1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, headers string) {
		text := "POST /v1/accounts/1 HTTP/1.1\r\n" + headers + "\r\n\r\n"
		var ours fasthttp.RequestHeader
		watched := connection.NewHeaderWatcher()
		watched.Watch([]byte(text))
		if ours.Read(bufio.NewReader(strings.NewReader(text))) != nil || !wellFramed(&ours) || watched.FoldedLine {
			return
		}
		theirs, err := http.ReadRequest(bufio.NewReader(strings.NewReader(text)))
		if err != nil {
			return
		}
		const inChunks = -1
		length := theirs.ContentLength
		if len(theirs.TransferEncoding) > 0 {
			length = inChunks
		}
		if ours.ContentLength() >= inChunks && int64(ours.ContentLength()) != length || ours.ContentLength() < inChunks && length != 0 {
			t.Fatalf("%q has %d bytes, to others %d", text, ours.ContentLength(), length)
		}
		if host, _ := header(ours.RawHeaders(), "host"); host != theirs.Host {
			t.Fatalf("%q is for %q, to others for %q", text, host, theirs.Host)
		}
	})
}
