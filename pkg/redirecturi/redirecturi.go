// Package redirecturi checks and compares redirection endpoints (RFC 6749,
// section 3.1.2) and origins (RFC 6454): the lists that say where a browser may be
// sent after a login, so that no page is an open redirect
// (docs/interface/applications.md#callbacks-and-origins).
package redirecturi

import (
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
)

// maxList bounds a list of URIs, joined by commas, in characters.
const maxList = 4000

// Callbacks reads a list of callback URIs from the member name of a body; null
// empties it. It returns apierr.TooLong or Format.
func Callbacks(in field.List, name string) ([]string, error) {
	return list(in, name, isCallback,
		"an absolute URI of http, https or an application's own scheme, without user name and fragment, whose left-most host label may be *")
}

// Origins reads a list of origins as Callbacks reads callbacks.
func Origins(in field.List, name string) ([]string, error) {
	return list(in, name, isOrigin, "an origin of the form scheme://host[:port], whose left-most host label may be *")
}

func list(in field.List, name string, is func(string) bool, form string) ([]string, error) {
	uris := in.Or(nil)
	if n := len([]rune(strings.Join(uris, ","))); n > maxList {
		return nil, apierr.TooLong.Because("%s has %d characters, joined by commas; at most %d are allowed", name, n, maxList)
	}
	for _, uri := range uris {
		if !is(uri) {
			return nil, apierr.Format.Because("%s holds %q, which is not %s", name, uri, form)
		}
	}
	return append([]string{}, uris...), nil
}

// isCallback checks the form of a callback URI. One of an application's own
// scheme may have a path without a host (RFC 8252, section 7.1).
func isCallback(text string) bool {
	u, ok := parse(text)
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

// isOrigin checks the form of an origin, which a browser sends without a slash at
// its end.
func isOrigin(text string) bool {
	u, ok := parse(text)
	return ok && u.Path == "" && u.RawQuery == "" && !u.ForceQuery && isHost(u, text, isWeb(u))
}

// IsListed reports whether a callback URI matches an entry of a list: scheme,
// host, port and path are equal, a wildcard stands for one label, and the query is
// not compared.
func IsListed(asked string, listed []string) bool {
	bare, _, _ := strings.Cut(asked, "?")
	a, ok := parse(asked)
	if !ok || !isCallback(bare) || strings.Contains(bare, "*") {
		return false
	}
	return slices.ContainsFunc(listed, func(entry string) bool {
		l, ok := parse(entry)
		return ok && a.Scheme == l.Scheme && port(a) == port(l) && path(a) == path(l) && isHostOf(a.Hostname(), l.Hostname())
	})
}

// IsListedOrigin reports whether an origin, as a browser sends it, matches an
// entry of a list.
func IsListedOrigin(origin string, listed []string) bool {
	return isOrigin(origin) && IsListed(origin, listed)
}

// isHostOf reports whether a host name is the listed one, or one label below that
// of a wildcard.
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

// path returns the path of a URI as it is written; that of a web address without
// one is the root.
func path(u *url.URL) string {
	if path := u.EscapedPath(); path != "" || !isWeb(u) {
		return path
	}
	return "/"
}

// executable are the schemes that make a browser run or read something instead of
// going somewhere.
var executableSchemes = []string{"about", "blob", "data", "file", "filesystem", "javascript", "vbscript", "view-source"}

// IsExecutable reports whether a scheme, in any letter case, makes a browser run or
// read something instead of going somewhere.
func IsExecutable(scheme string) bool { return slices.Contains(executableSchemes, strings.ToLower(scheme)) }

// parse reads an absolute, hierarchical URI of the characters that RFC 3986
// allows. What programs are known to read in two ways is refused: a user name, a
// fragment, a backslash.
func parse(text string) (*url.URL, bool) {
	if strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r >= 0x7f || strings.ContainsRune("\"<>\\^`{|}#", r) }) {
		return nil, false
	}
	u, err := url.Parse(text)
	return u, err == nil && u.Scheme != "" && u.Opaque == "" && u.User == nil && !IsExecutable(u.Scheme)
}

func isWeb(u *url.URL) bool { return u.Scheme == "http" || u.Scheme == "https" }

// isHost checks the host and the port of a URI. A wildcard, where there may be
// one, is the whole left-most label of a name and is nowhere else in the URI.
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

// isName checks a host name. One whose last label is a number is read as an IPv4
// address by browsers, so that it must be one in full.
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
