package cells

import (
	"encoding/base64"
	"encoding/json"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/doorward/doorward/pkg/id"
)

// kind is a parameter of the look-up of /operator/v1.
type kind string

const (
	byKey  kind = "key"  // id of an API key
	byID   kind = "id"   // id of a resource, or the token of a mailed link
	byHost kind = "host" // custom domain, or host or label of a Client API

	// ofTenant is no parameter: it is the id or the key of a tenant, which answers depend on.
	ofTenant kind = "tenant"
)

// name is something in a request that tells its tenant.
type name struct {
	kind  kind
	value string
}

const (
	maxNames = 8        // of one request
	maxToken = 16 << 10 // bytes of a JWT
	maxName  = 255      // bytes
)

// request is the part of a request that tells its tenant.
type request struct {
	host, uri     string
	authorization []string
}

// forwarded returns the request that a proxy asks about: the one of the headers X-Forwarded-Host and -Uri, or,
// without them, the asking one, which some proxies send with the path and the host of the client.
func forwarded(r *http.Request) request {
	in := request{host: r.Header.Get("X-Forwarded-Host"), uri: r.Header.Get("X-Forwarded-Uri"),
		authorization: r.Header.Values("Authorization")}
	if in.host == "" {
		in.host = r.Host
	}
	if in.uri == "" {
		in.uri = r.URL.RequestURI()
	}
	return in
}

// names are those of one request, each once, the best first.
type names []name

func (n *names) add(k kind, value string) {
	found := name{k, value}
	if value != "" && len(value) <= maxName && len(*n) < maxNames && !slices.Contains(*n, found) {
		*n = append(*n, found)
	}
}

// names returns what tells the tenant of a request, in the order in which it is looked up: the key that
// authenticates it, the tokens of its query, the ids of its path, its host. Nothing is verified here: the cell
// does that.
func (r request) names() names {
	var found names
	if len(r.authorization) == 1 {
		found.addAuthorization(r.authorization[0])
	}
	path, query, _ := strings.Cut(r.uri, "?")
	values, _ := url.ParseQuery(query) // what can be read of it
	for _, parameter := range []string{"jwtRequest", "jwtResponse", "sptoken"} {
		found.addToken(values.Get(parameter))
	}
	if mailed := values.Get("sptoken"); isWord(mailed) { // no JWT
		found.add(byID, mailed)
	}
	found.addState(values.Get("state"))
	found.addPath(path)
	found.addHost(r.host)
	return found
}

// addAuthorization adds what a header Authorization names.
func (n *names) addAuthorization(header string) {
	scheme, text, _ := strings.Cut(header, " ")
	text = strings.Trim(text, " ")
	switch strings.ToLower(scheme) {
	case "basic":
		plain, err := base64.StdEncoding.DecodeString(text)
		user, _, colon := strings.Cut(string(plain), ":")
		if err == nil && colon {
			n.addKey(user)
		}
	case "sauthc1":
		for part := range strings.SplitSeq(text, ",") {
			if signed, ok := strings.CutPrefix(strings.Trim(part, " \t"), "sauthc1Id="); ok {
				key, _, _ := strings.Cut(signed, "/")
				n.addKey(key)
			}
		}
	case "bearer", "dpop":
		n.addToken(text)
	}
}

// addKey adds the id of an API key, which may also be that of a client of an OpenID provider.
func (n *names) addKey(text string) {
	if !isWord(text) {
		return
	}
	n.add(byKey, text)
	n.addID(text)
}

// addID adds a text that has the form of an id.
func (n *names) addID(text string) {
	if _, err := id.Parse(text); err == nil {
		n.add(byID, text)
	}
}

// isWord reports whether a text has the characters of the ids of API keys and of random tokens.
func isWord(text string) bool {
	const characters = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_"
	return text != "" && strings.Trim(text, characters) == ""
}

// token is what the header and the claims of a JWT say of its tenant.
type token struct {
	Tenant string `json:"tid"` // of tokens that the service itself verifies
	Key    string `json:"kid"`
	Issuer string `json:"iss"`
}

// parseToken reads a JWT without verifying it.
func parseToken(text string) (t token, ok bool) {
	text = strings.NewReplacer("%2E", ".", "%2e", ".").Replace(text) // mail programs escape dots
	parts := strings.Split(text, ".")
	if len(text) > maxToken || len(parts) != 3 {
		return t, false
	}
	var claims token
	for i, into := range []*token{&t, &claims} {
		plain, err := base64.RawURLEncoding.DecodeString(parts[i])
		if err != nil {
			return t, false
		}
		_ = json.Unmarshal(plain, into) // a member of another type names nothing
	}
	t.Issuer = claims.Issuer
	return t, true
}

// addToken adds what a JWT names.
func (n *names) addToken(text string) {
	t, ok := parseToken(text)
	if !ok {
		return
	}
	n.addID(t.Tenant)
	if t.Tenant == "" { // the kid beside a tid is that of a master key
		n.addKey(t.Key)
	}
	issuer, err := url.Parse(t.Issuer)
	switch {
	case err == nil && issuer.Host != "":
		n.addPath(issuer.Path)
		n.addHost(issuer.Host)
	case t.Key == "":
		n.addKey(t.Issuer)
	}
}

// addState adds the tenant of the state of a login at a provider. The state of any other login is opaque.
func (n *names) addState(text string) {
	if t, ok := parseToken(text); ok {
		n.addID(t.Tenant)
	}
}

// addPath adds the ids of a path, and the label of a Client API at /client/{label}.
func (n *names) addPath(path string) {
	client := false
	for segment := range strings.SplitSeq(path, "/") {
		plain, err := url.PathUnescape(segment)
		if err != nil || plain == "" {
			continue
		}
		if client {
			n.add(byHost, strings.ToLower(plain))
		}
		client = plain == "client"
		n.addID(plain)
	}
}

// addHost adds a host that may be that of a tenant.
func (n *names) addHost(host string) {
	host = strings.ToLower(host)
	if without, _, err := net.SplitHostPort(host); err == nil {
		host = without
	}
	host = strings.Trim(host, "[].")
	if host != "localhost" && net.ParseIP(host) == nil {
		n.add(byHost, host)
	}
}
