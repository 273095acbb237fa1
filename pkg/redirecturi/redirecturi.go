// Package redirecturi validates redirect URIs (redirect_uri, callback URLs: RFC 6749, section 3.1.2) and
// origins (RFC 6454, for CORS), and compares them with the allow-lists of an application, so that a
// browser is sent only to a listed URI after a login and no page is an open redirect
// (docs/interface/applications.md#callbacks-and-origins).
package redirecturi

import (
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/publicsuffix"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
)

// maxList bounds a list of URIs, joined by commas, in characters.
const maxList = 4000

// Callbacks validates the list of callback URIs in the member name of a body; null is an empty list. It
// returns apierr.TooLong or Format. An entry of the current list that is posted back is not validated
// again, as field.Unchanged says.
func Callbacks(in field.List, name string, current []string) ([]string, error) {
	return list(in, name, current, isCallback,
		"an absolute URI of http, https or an application's own scheme, without user name and "+
			"fragment, whose left-most host label may be * below a domain that is no public suffix")
}

// Origins validates a list of origins, as Callbacks does for callback URIs.
func Origins(in field.List, name string, current []string) ([]string, error) {
	return list(in, name, current, isOrigin,
		"an origin of the form scheme://host[:port], whose left-most host label may be * below a "+
			"domain that is no public suffix")
}

func list(in field.List, name string, current []string, is func(string) bool, form string) ([]string, error) {
	uris := in.Or(nil)
	if n := len([]rune(strings.Join(uris, ","))); n > maxList && !slices.Equal(uris, current) {
		return nil, apierr.TooLong.Because("%s has %d characters, joined by commas; at most %d are allowed", name, n,
			maxList)
	}
	for _, uri := range uris {
		if !slices.Contains(current, uri) && !is(uri) {
			return nil, apierr.Format.Because("%s holds %q, which is not %s", name, uri, form)
		}
	}
	return append([]string{}, uris...), nil
}

// isCallback reports whether a text is a valid callback URI. A URI with a private-use scheme of an app
// may have a path without a host (RFC 8252, section 7.1).
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

// isOrigin reports whether a text is a valid origin, without a slash at its end.
func isOrigin(text string) bool {
	u, ok := parse(text)
	return ok && u.Path == "" && u.RawQuery == "" && !u.ForceQuery && isHost(u, text, isWeb(u))
}

// CheckHome returns apierr.Format unless a text is the address of a web page for users: https, or http of the
// loopback.
func CheckHome(text, name string) error {
	u, ok := parse(strings.TrimSpace(text))
	if !ok || !isHost(u, text, false) || u.Scheme != "https" && !(u.Scheme == "http" && isLoopback(u.Hostname())) {
		return apierr.Format.Because(
			"%s must be an absolute https address, or an http address of the loopback, without user name and fragment",
			name)
	}
	return nil
}

// DefaultOrigin returns the origin of the default callback of a list: the first one without a wildcard. It
// returns "" where there is none, and where a browser cannot open it as CheckHome asks for.
func DefaultOrigin(callbacks []string) string {
	for _, callback := range callbacks {
		if strings.Contains(callback, "*") {
			continue
		}
		if u, ok := parse(callback); ok && CheckHome(callback, "") == nil {
			return u.Scheme + "://" + u.Host + "/"
		}
		return ""
	}
	return ""
}

// isLoopback reports whether a host name is that of the own machine.
func isLoopback(name string) bool {
	address, err := netip.ParseAddr(name)
	return err == nil && address.IsLoopback() || strings.EqualFold(name, "localhost") ||
		strings.HasSuffix(strings.ToLower(name), ".localhost")
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
		return ok && a.Scheme == l.Scheme && port(a) == port(l) && path(a) == path(l) &&
			isHostOf(a.Hostname(), l.Hostname())
	})
}

// IsListedOrigin reports whether the origin of a request matches an entry of a list: scheme, host and
// port are equal. A slash at its end is ignored, because programs that are no browsers send one.
func IsListedOrigin(origin string, listed []string) bool {
	origin = strings.TrimSuffix(origin, "/")
	return isOrigin(origin) && IsListed(origin, listed)
}

// IsSameSite reports whether browsers take two addresses for the same site (schemefully same-site): the
// scheme is equal, and the registrable domain, the part of the host below a public suffix.
func IsSameSite(one, other string) bool {
	a, ok := parse(strings.TrimSuffix(one, "/"))
	b, known := parse(other)
	return ok && known && a.Scheme == b.Scheme && RegistrableDomain(a.Hostname()) == RegistrableDomain(b.Hostname())
}

// RegistrableDomain returns the part of a host name below a public suffix: example.co.uk for
// login.example.co.uk. A host that has none, such as an IP address, localhost or co.uk, is returned
// itself, in lower case.
func RegistrableDomain(host string) string {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if _, err := netip.ParseAddr(host); err == nil {
		return host
	}
	domain, err := publicsuffix.EffectiveTLDPlusOne(host)
	if err != nil {
		return host
	}
	return domain
}

// IsPublicSuffix reports whether anybody may register names below a host name, such as co.uk.
func IsPublicSuffix(host string) bool {
	suffix, _ := publicsuffix.PublicSuffix(host)
	return suffix == host
}

// isHostOf reports whether a host name is the listed host name, or one label below a wildcard.
func isHostOf(asked, listed string) bool {
	if domain, wildcard := strings.CutPrefix(listed, "*."); wildcard {
		_, below, _ := strings.Cut(asked, ".")
		return strings.EqualFold(below, domain)
	}
	return strings.EqualFold(asked, listed)
}

// port returns the port of a URI, or the default port of its scheme.
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

// path returns the escaped path of a URI; for an empty path of http or https it is "/".
func path(u *url.URL) string {
	if path := u.EscapedPath(); path != "" || !isWeb(u) {
		return path
	}
	return "/"
}

// executableSchemes are the schemes by which a browser runs a script or reads local data.
var executableSchemes = []string{"about", "blob", "data", "file", "filesystem", "javascript", "vbscript", "view-source"}

// IsExecutable reports whether a browser runs a script or reads local data by a scheme, in any letter
// case, such as javascript or data.
func IsExecutable(scheme string) bool {
	return slices.Contains(executableSchemes, strings.ToLower(scheme))
}

// parse parses an absolute, hierarchical URI of the characters that RFC 3986 allows. It refuses a user
// name, a fragment and a backslash, because programs are known to parse such URIs differently.
func parse(text string) (*url.URL, bool) {
	if strings.ContainsFunc(text, func(r rune) bool {
		return r <= ' ' || r >= 0x7f || strings.ContainsRune("\"<>\\^`{|}#", r)
	}) {
		return nil, false
	}
	u, err := url.Parse(text)
	return u, err == nil && u.Scheme != "" && u.Opaque == "" && u.User == nil && !IsExecutable(u.Scheme)
}

func isWeb(u *url.URL) bool { return u.Scheme == "http" || u.Scheme == "https" }

// isHost reports whether the host and the port of a URI are valid. A wildcard, if it is allowed, must be
// the whole left-most label of the host, and occur nowhere else in the URI.
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
	return isName(name, isWildcard) && !(isWildcard && isPublicSuffix(name))
}

// isPublicSuffix reports whether a domain is one below which anybody may register names, such as com or
// co.uk (publicsuffix.org): a wildcard over it would list the domains of strangers.
func isPublicSuffix(name string) bool {
	name = strings.ToLower(name)
	suffix, isOfICANN := publicsuffix.PublicSuffix(name)
	// a single label that is not in the list is one of a private network
	isKnown := isOfICANN || strings.Contains(suffix, ".")
	return isKnown && suffix == name
}

func isPort(text string) bool {
	if text == "" {
		return true
	}
	port, err := strconv.Atoi(text)
	return err == nil && port > 0 && port <= 65535
}

// isName reports whether a host name is valid. Browsers take a host name whose last label is a number
// for an IPv4 address, so that it must be a complete IPv4 address.
func isName(name string, below bool) bool {
	labels := strings.Split(name, ".")
	for _, label := range labels {
		if label == "" || len(label) > 63 ||
			strings.Trim(label, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") != "" {
			return false
		}
	}
	if strings.Trim(labels[len(labels)-1], "0123456789") == "" {
		address, err := netip.ParseAddr(name)
		return err == nil && address.Is4() && !below
	}
	return len(name) <= 253
}
