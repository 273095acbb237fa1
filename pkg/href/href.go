// Package href makes the absolute URLs (href) of resources, and parses them. No other package joins or
// splits such URLs.
package href

import (
	"net/url"
	"strings"

	"github.com/doorward/doorward/pkg/id"
)

// Link is a link to another resource in a representation.
type Link struct {
	Href string `json:"href"`
}

// Base is the public address of the management API, with its version segment
// and without a slash at the end: "https://localhost:8443/v1". After it, separated by spaces, may
// stand former addresses of the deployment (NewBase): URLs are made with the first address alone, and
// parsed with any of them, so that the URLs that clients have stored, and the issuers of tokens, outlive
// a new address.
type Base string

// NewBase returns the base of an address and of the addresses that the deployment had before.
func NewBase(address string, former ...string) Base {
	return Base(strings.Join(append([]string{address}, former...), " "))
}

// WithFormer returns the base with further former addresses.
func (b Base) WithFormer(former ...string) Base { return NewBase(string(b), former...) }

// String returns the current address.
func (b Base) String() string {
	address, _, _ := strings.Cut(string(b), " ")
	return address
}

// Ref is a parsed URL of a resource: its collection and its id.
type Ref struct {
	Kind string // "accounts", "directories", …
	ID   id.ID
}

// To returns the URL of a resource, or of a path below it.
func (b Base) To(kind string, v id.ID, below ...string) string {
	if len(below) == 0 {
		return b.String() + "/" + kind + "/" + v.String()
	}
	return b.String() + "/" + kind + "/" + v.String() + "/" + strings.Join(below, "/")
}

// Path returns the URL with the joined segments.
func (b Base) Path(segments ...string) string {
	return b.String() + "/" + strings.Join(segments, "/")
}

// Link returns To as a link.
func (b Base) Link(kind string, v id.ID, below ...string) Link {
	return Link{Href: b.To(kind, v, below...)}
}

// OptionalLink is Link, or nil (JSON null) for the zero ID.
func (b Base) OptionalLink(kind string, v id.ID, below ...string) *Link {
	if v.IsZero() {
		return nil
	}
	link := b.Link(kind, v, below...)
	return &link
}

// Host returns the address without the version segment.
func (b Base) Host() string { return strings.TrimSuffix(b.String(), "/v1") }

// Origin returns the origin of another host of the deployment, with the port of the address: hosted pages are there.
func (b Base) Origin(host string) string {
	if address, err := url.Parse(b.String()); err == nil && address.Port() != "" && address.Port() != "443" {
		host += ":" + address.Port()
	}
	return "https://" + host
}

// Hostname returns the host name of the address, without its port.
func (b Base) Hostname() string {
	address, err := url.Parse(b.String())
	if err != nil {
		return "localhost"
	}
	return address.Hostname()
}

// Parse parses the URL of a resource of this deployment.
func (b Base) Parse(href string) (Ref, bool) {
	rest, ok := b.cutAddress(href)
	if !ok {
		return Ref{}, false
	}
	kind, text, ok := strings.Cut(strings.TrimSuffix(rest, "/"), "/")
	if !ok {
		return Ref{}, false
	}
	v, err := id.Parse(text)
	return Ref{Kind: kind, ID: v}, err == nil && !v.IsZero()
}

// Is reports whether a URL, such as the issuer of a token, is that of a resource of this deployment,
// without a slash at its end.
func (b Base) Is(href, kind string, v id.ID) bool {
	ref, ok := b.Parse(href)
	return ok && ref == Ref{Kind: kind, ID: v} && !strings.HasSuffix(href, "/")
}

// Last parses the URL of a resource of this deployment whose name is no id.ID, such as an API key. It
// returns the last segment, after that of the collection.
func (b Base) Last(kind, href string) (name string, ok bool) {
	rest, ok := b.cutAddress(href)
	if !ok {
		return "", false
	}
	name, ok = strings.CutPrefix(rest, kind+"/")
	name = strings.TrimSuffix(name, "/")
	return name, ok && name != "" && !strings.Contains(name, "/")
}

// cutAddress returns the path of a URL after the address of this deployment, the current one or a former
// one, without the slash between them. It is the one comparison of addresses: scheme and host in any
// letter case, and the default port of the scheme or none, name the same address (RFC 3986, section 6.2).
func (b Base) cutAddress(href string) (path string, ok bool) {
	for address := range strings.SplitSeq(string(b), " ") {
		if path, ok := strings.CutPrefix(href, address+"/"); ok {
			return path, true
		}
		if path, ok := strings.CutPrefix(normalize(href), normalize(address)+"/"); ok {
			return path, true
		}
	}
	return "", false
}

// normalize returns a URL with its scheme and host in lower case and without the default port of the
// scheme. A text that is no absolute URL is returned as it is.
func normalize(address string) string {
	scheme, rest, ok := strings.Cut(address, "://")
	if !ok {
		return address
	}
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	scheme, host := strings.ToLower(scheme), strings.ToLower(rest[:end])
	if port, known := map[string]string{"https": ":443", "http": ":80"}[scheme]; known {
		host = strings.TrimSuffix(strings.TrimSuffix(host, port), ":")
	}
	return scheme + "://" + host + rest[end:]
}
