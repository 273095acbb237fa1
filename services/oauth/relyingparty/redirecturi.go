package relyingparty

import (
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/doorward/doorward/pkg/redirecturi"
	"github.com/doorward/doorward/services/oauth/store"
)

// HostOf returns the host of a URI; empty: it has none.
func HostOf(uri string) string {
	u, err := url.Parse(uri)
	if err != nil {
		return ""
	}
	return u.Hostname()
}

// IsRedirectURI reports whether a client of a type may register a redirect URI: https, http of the own machine,
// and for native applications a private-use scheme with a dot (RFC 8252, section 7.1). URIs are compared byte by
// byte later, so that a text which two parsers read differently is refused here.
func IsRedirectURI(text, applicationType string) bool {
	u, ok := plainURL(text)
	if !ok || strings.Contains(text, "*") {
		return false
	}
	switch u.Scheme {
	case "https":
		return u.Hostname() != "" && redirecturi.CheckHome(text, "") == nil
	case "http":
		return IsOwnMachine(u.Hostname()) && redirecturi.CheckHome(text, "") == nil
	}
	return applicationType == TypeNative && strings.Contains(u.Scheme, ".") && u.Host == "" &&
		!redirecturi.IsExecutable(u.Scheme)
}

// IsOwnMachine reports whether a host is localhost or a loopback address.
func IsOwnMachine(host string) bool {
	address, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && address.IsLoopback()
}

// MatchesRedirectURI reports whether a redirect URI is a registered one.
func MatchesRedirectURI(v store.OpenIDClientSettings, asked string) bool {
	return MatchesURI(v, v.RedirectURIs, asked)
}

// MatchesURI reports whether a redirect URI is one of a client's: byte by byte (RFC 9700, section 2.1), but for the
// port of a loopback address of a native application (RFC 8252, section 7.3).
func MatchesURI(v store.OpenIDClientSettings, known []string, asked string) bool {
	if slices.Contains(known, asked) {
		return true
	}
	u, ok := plainURL(asked)
	if !ok || v.ApplicationType != TypeNative || u.Scheme != "http" || !IsOwnMachine(u.Hostname()) ||
		!IsRedirectURI(asked, TypeNative) {
		return false
	}
	return slices.ContainsFunc(known, func(registered string) bool {
		r, ok := plainURL(registered)
		return ok && withoutPort(r, registered) == withoutPort(u, asked)
	})
}

func withoutPort(u *url.URL, text string) string {
	if u.Port() == "" {
		return text
	}
	return strings.Replace(text, u.Host, strings.TrimSuffix(u.Host, ":"+u.Port()), 1)
}

// IsResource reports whether a text is the address of an API (RFC 8707, section 2).
func IsResource(text string) bool {
	u, ok := plainURL(text)
	return ok && (u.Scheme == "https" || u.Scheme == "http") && u.Hostname() != "" || ok && u.Scheme == "urn" &&
		u.Opaque != ""
}

// plainURL parses an absolute URI of printable ASCII without user name, fragment and backslash.
func plainURL(text string) (*url.URL, bool) {
	if len(text) > MaxURL || strings.ContainsFunc(text, func(r rune) bool {
		return r <= ' ' || r >= 0x7f || strings.ContainsRune("\"<>\\^`{|}#", r)
	}) {
		return nil, false
	}
	u, err := url.Parse(text)
	return u, err == nil && u.IsAbs() && u.User == nil && !strings.HasSuffix(u.Host, ":")
}
