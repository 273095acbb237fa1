package application

import (
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
)

// maxURIs bounds a list of URIs, joined, in characters
// (docs/interface/applications.md#callbacks-and-origins).
const maxURIs = 4000

// callbackURIs reads the URIs to which a login may send a browser back.
func callbackURIs(in field.List) ([]string, error) {
	return uris(in, "authorizedCallbackUris", isCallback,
		"an absolute URI of http, https or an application's own scheme, without user name and fragment, whose left-most host label may be *")
}

// originURIs reads the origins whose pages may call the Client API.
func originURIs(in field.List) ([]string, error) {
	return uris(in, "authorizedOriginUris", isOrigin,
		"an origin of the form scheme://host[:port], whose left-most host label may be *")
}

// uris reads a list, which replaces the former one whole; null empties it.
func uris(in field.List, name string, is func(string) bool, form string) ([]string, error) {
	list := in.Or(nil)
	if n := len([]rune(strings.Join(list, ","))); n > maxURIs {
		return nil, apierr.TooLong.Because("%s has %d characters, joined by commas; at most %d are allowed", name, n, maxURIs)
	}
	for _, uri := range list {
		if !is(uri) {
			return nil, apierr.Format.Because("%s holds %q, which is not %s", name, uri, form)
		}
	}
	return append([]string{}, list...), nil
}

// isCallback checks the form of a callback URI. One of an application's own
// scheme may have a path without a host (RFC 8252, section 7.1).
func isCallback(text string) bool {
	u, ok := parseURI(text)
	if !ok {
		return false
	}
	if isWeb(u) {
		return isHost(u, text, true)
	}
	if u.Host == "" {
		return strings.HasPrefix(u.Path, "/") && !strings.Contains(text, "*")
	}
	return isHost(u, text, false)
}

// isOrigin checks the form of an origin (RFC 6454), which a browser sends
// without a slash at its end.
func isOrigin(text string) bool {
	u, ok := parseURI(text)
	return ok && u.Path == "" && u.RawQuery == "" && !u.ForceQuery && isHost(u, text, isWeb(u))
}

// wantCallback refuses a callback that a client asks for and that the application
// does not list: apierr.NoCallback where it lists none, else CallbackNotListed.
func wantCallback(a applicationapi.Application, asked string) error {
	if len(a.AuthorizedCallbackURIs) == 0 {
		return apierr.NoCallback.Because("the application has no authorizedCallbackUris, so that callbackUri cannot be one of them")
	}
	if !slices.ContainsFunc(a.AuthorizedCallbackURIs, func(listed string) bool { return isListed(asked, listed) }) {
		return apierr.CallbackNotListed.Because("callbackUri %q is none of the application's authorizedCallbackUris", asked)
	}
	return nil
}

// isListed compares a callback that is asked for with an entry of the list: scheme,
// host, port and path are equal, a wildcard stands for one label, and the query is
// free (docs/interface/applications.md#callbacks-and-origins).
func isListed(asked, listed string) bool {
	bare, _, _ := strings.Cut(asked, "?")
	a, ok := parseURI(asked)
	if !ok || !isCallback(bare) || strings.Contains(bare, "*") {
		return false
	}
	l, ok := parseURI(listed)
	return ok && a.Scheme == l.Scheme && port(a) == port(l) && path(a) == path(l) && isHostOf(a.Hostname(), l.Hostname())
}

// isHostOf reports whether a host name is the listed one, or one label below
// that of a wildcard.
func isHostOf(asked, listed string) bool {
	if domain, wildcard := strings.CutPrefix(listed, "*."); wildcard {
		_, below, _ := strings.Cut(asked, ".")
		return strings.EqualFold(below, domain)
	}
	return strings.EqualFold(asked, listed)
}

// port returns the port that a URI leads to.
func port(u *url.URL) string {
	switch port := u.Port(); {
	case port != "":
		return port
	case u.Scheme == "https":
		return "443"
	case u.Scheme == "http":
		return "80"
	}
	return ""
}

// path returns the path of a URI as it is written; that of a web address without one
// is the root.
func path(u *url.URL) string {
	if path := u.EscapedPath(); path != "" || !isWeb(u) {
		return path
	}
	return "/"
}

// executable are the schemes that make a browser run or read something instead
// of going somewhere.
var executable = map[string]bool{
	"about": true, "blob": true, "data": true, "file": true, "filesystem": true, "javascript": true, "vbscript": true, "view-source": true,
}

// parseURI reads an absolute, hierarchical URI of the characters that RFC 3986
// allows. What programs are known to read in two ways has no place in a list of
// what is allowed: a user name, a fragment, a backslash.
func parseURI(text string) (*url.URL, bool) {
	if strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r >= 0x7f || strings.ContainsRune("\"<>\\^`{|}#", r) }) {
		return nil, false
	}
	u, err := url.Parse(text)
	return u, err == nil && u.Scheme != "" && u.Opaque == "" && u.User == nil && !executable[u.Scheme]
}

func isWeb(u *url.URL) bool { return u.Scheme == "http" || u.Scheme == "https" }

// isHost checks the host and the port of a URI. A wildcard, where there may be
// one, is the whole left-most label of a name and stands nowhere else in the
// URI.
func isHost(u *url.URL, text string, wildcard bool) bool {
	if strings.HasSuffix(u.Host, ":") || !isPort(u.Port()) {
		return false
	}
	name, isWildcard := strings.CutPrefix(u.Hostname(), "*.")
	if isWildcard && !wildcard || strings.Count(text, "*") > 1 || strings.Contains(text, "*") && !isWildcard {
		return false
	}
	if strings.HasPrefix(u.Host, "[") {
		address, err := netip.ParseAddr(name)
		return err == nil && address.Is6() && address.Zone() == ""
	}
	return isName(name, isWildcard)
}

func isPort(text string) bool {
	if text == "" {
		return true
	}
	port, err := strconv.Atoi(text)
	return err == nil && port > 0 && port <= 65535
}

// isName checks a host name. One whose last label is a number is read as an
// IPv4 address by browsers, so that it must be one in full.
func isName(name string, below bool) bool {
	labels := strings.Split(name, ".")
	for _, label := range labels {
		if label == "" || len(label) > 63 || strings.Trim(label, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") != "" {
			return false
		}
	}
	if strings.Trim(labels[len(labels)-1], "0123456789") == "" {
		address, err := netip.ParseAddr(name)
		return err == nil && address.Is4() && !below
	}
	return len(name) <= 253
}
