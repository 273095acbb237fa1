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
// and without a slash at the end: "https://localhost:8443/v1".
type Base string

// Ref is a parsed URL of a resource: its collection and its id.
type Ref struct {
	Kind string // "accounts", "directories", …
	ID   id.ID
}

// To returns the URL of a resource, or of a path below it.
func (b Base) To(kind string, v id.ID, below ...string) string {
	if len(below) == 0 {
		return string(b) + "/" + kind + "/" + v.String()
	}
	return string(b) + "/" + kind + "/" + v.String() + "/" + strings.Join(below, "/")
}

// Path returns the URL with the joined segments.
func (b Base) Path(segments ...string) string {
	return string(b) + "/" + strings.Join(segments, "/")
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
func (b Base) Host() string { return strings.TrimSuffix(string(b), "/v1") }

// Hostname returns the host name of the address, without its port.
func (b Base) Hostname() string {
	address, err := url.Parse(string(b))
	if err != nil {
		return "localhost"
	}
	return address.Hostname()
}

// Parse parses the URL of a resource of this deployment.
func (b Base) Parse(href string) (Ref, bool) {
	rest, ok := strings.CutPrefix(href, string(b)+"/")
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

// Last parses the URL of a resource of this deployment whose name is no id.ID, such as an API key. It
// returns the last segment, after that of the collection.
func (b Base) Last(kind, href string) (name string, ok bool) {
	name, ok = strings.CutPrefix(href, b.Path(kind, ""))
	name = strings.TrimSuffix(name, "/")
	return name, ok && name != "" && !strings.Contains(name, "/")
}
