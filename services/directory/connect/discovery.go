package connect

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
)

// wellKnown is where an issuer has its metadata (OpenID Connect Discovery,
// section 4).
const wellKnown = "/.well-known/openid-configuration"

// metadata is what a login needs of an issuer's metadata.
type metadata struct {
	Issuer        string   `json:"issuer"`
	Authorization string   `json:"authorization_endpoint"`
	Token         string   `json:"token_endpoint"`
	UserInfo      string   `json:"userinfo_endpoint"`
	JWKS          string   `json:"jwks_uri"`
	Algorithms    []string `json:"id_token_signing_alg_values_supported"`
	Challenges    []string `json:"code_challenge_methods_supported"`
	AuthMethods   []string `json:"token_endpoint_auth_methods_supported"`
}

// asymmetric are the algorithms of id tokens that are accepted: with others, a key
// that is public could sign.
var asymmetric = []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}

// discover fills in what the metadata of the issuer says.
func (c *Client) discover(ctx context.Context, p *provider) error {
	issuer := strings.TrimSuffix(strings.TrimSuffix(p.DiscoveryURL, "/"), wellKnown)
	body, err := c.document(ctx, issuer+wellKnown, false)
	var m metadata
	if err == nil && json.Unmarshal(body, &m) != nil {
		err = errNoObject
	}
	if err != nil {
		if status, ok := errors.AsType[statusError](err); ok {
			return refuse(p.Provider, "its discovery document: "+status.Error())
		}
		return refuse(p.Provider, "its discovery document: "+reason(err))
	}
	if strings.TrimSuffix(m.Issuer, "/") != strings.TrimSuffix(issuer, "/") {
		return refuse(p.Provider, fmt.Sprintf("its discovery document is that of the issuer %q; set discoveryUrl to that", visible(m.Issuer)))
	}
	for _, filled := range []struct {
		to   *string
		from string
	}{{&p.Authorization, m.Authorization}, {&p.Token, m.Token}, {&p.Resource, m.UserInfo}, {&p.JWKS, m.JWKS}} {
		if *filled.to == "" {
			if filled.from != "" && !strings.HasPrefix(filled.from, "https://") {
				return refuse(p.Provider, "its discovery document names an endpoint without https")
			}
			*filled.to = filled.from
		}
	}
	if p.Authorization == "" || p.Token == "" {
		return refuse(p.Provider, "its discovery document lacks the authorization or the token endpoint")
	}
	p.Issuer, p.takesPKCE = m.Issuer, slices.Contains(m.Challenges, "S256")
	p.secretInHeader = !slices.Contains(m.AuthMethods, "client_secret_post")
	p.algorithms = slices.DeleteFunc(m.Algorithms, func(name string) bool { return !slices.Contains(asymmetric, name) })
	return nil
}

const (
	// minLifetime and maxLifetime bound how long a document is kept, whatever its
	// lifetime says; defaultLifetime is that of one that says nothing.
	minLifetime     = time.Minute
	maxLifetime     = 24 * time.Hour
	defaultLifetime = time.Hour
	// maxDocuments bounds how many are kept.
	maxDocuments = 1000
)

// documents are discovery documents and key sets, each kept for its own lifetime.
type documents struct {
	flights singleflight.Group

	mu   sync.Mutex
	kept map[string]document
}

type document struct {
	body    []byte
	fetched time.Time
	until   time.Time
}

type statusError int

func (s statusError) Error() string { return statusText(int(s)) }

// document returns a document of a provider, fetched once for all callers that wait for it.
// fresh asks for a newer one than is kept, which it is at most once in a minute.
func (c *Client) document(ctx context.Context, address string, fresh bool) ([]byte, error) {
	d, now := c.documents, c.now()
	d.mu.Lock()
	kept, known := d.kept[address]
	d.mu.Unlock()
	if known && now.Before(kept.until) && (!fresh || now.Before(kept.fetched.Add(minLifetime))) {
		return kept.body, nil
	}
	fetched := d.flights.DoChan(address, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
		defer cancel()
		answer, body, err := c.call(ctx, address, nil)
		if err != nil {
			return nil, err
		}
		if answer.StatusCode != http.StatusOK {
			return nil, statusError(answer.StatusCode)
		}
		if _, err := decode(body); err != nil {
			return nil, err
		}
		now := c.now()
		d.keep(address, document{body, now, now.Add(lifetime(answer.Header.Get("Cache-Control")))})
		return body, nil
	})
	select {
	case got := <-fetched:
		if got.Err != nil {
			return nil, got.Err
		}
		body, _ := got.Val.([]byte)
		return body, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (d *documents) keep(address string, doc document) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for other, kept := range d.kept {
		if len(d.kept) < maxDocuments && kept.until.After(doc.fetched) {
			continue
		}
		delete(d.kept, other)
	}
	d.kept[address] = doc
}

// lifetime reads how long a document may be kept (RFC 9111, section 5.2.2).
func lifetime(cacheControl string) time.Duration {
	kept := defaultLifetime
	for directive := range strings.SplitSeq(strings.ToLower(cacheControl), ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(directive), "=")
		switch name {
		case "no-store", "no-cache":
			return minLifetime
		case "max-age":
			if seconds, err := strconv.ParseUint(strings.Trim(value, `"`), 10, 31); err == nil {
				kept = time.Duration(seconds) * time.Second
			}
		}
	}
	return min(max(kept, minLifetime), maxLifetime)
}
