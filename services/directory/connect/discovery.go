package connect

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/doorward/doorward/pkg/outbound"
)

// wellKnown is the path of the metadata of an issuer (discovery document; OpenID Connect
// Discovery, section 4).
const wellKnown = "/.well-known/openid-configuration"

// metadata are the members of an issuer's metadata that a login needs.
type metadata struct {
	Issuer        string   `json:"issuer"`
	Authorization string   `json:"authorization_endpoint"`
	Token         string   `json:"token_endpoint"`
	UserInfo      string   `json:"userinfo_endpoint"`
	Introspection string   `json:"introspection_endpoint"` // RFC 8414
	JWKS          string   `json:"jwks_uri"`
	Algorithms    []string `json:"id_token_signing_alg_values_supported"`
	Challenges    []string `json:"code_challenge_methods_supported"`
	AuthMethods   []string `json:"token_endpoint_auth_methods_supported"`

	IntrospectionAuthMethods []string `json:"introspection_endpoint_auth_methods_supported"`
}

// asymmetricAlgorithms are the signature algorithms of id tokens that are accepted. Symmetric ones
// are not: anybody could sign with the public key as the secret.
var asymmetricAlgorithms = []string{
	"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA",
}

// discover fills in the endpoints of a provider and what it supports, from its discovery document.
func (c *Client) discover(ctx context.Context, p *provider) error {
	issuer := strings.TrimSuffix(strings.TrimSuffix(p.DiscoveryURL, "/"), wellKnown)
	body, err := c.document(ctx, issuer+wellKnown, false)
	if status, ok := errors.AsType[statusError](err); ok {
		return providerError(p.Provider, "its discovery document: "+status.Error())
	}
	if err != nil {
		return providerError(p.Provider, "its discovery document: "+failureText(err))
	}
	var m metadata
	if json.Unmarshal(body, &m) != nil {
		return providerError(p.Provider, "its discovery document: "+failureText(errNoObject))
	}
	if strings.TrimSuffix(m.Issuer, "/") != strings.TrimSuffix(issuer, "/") {
		return providerError(p.Provider,
			fmt.Sprintf("its discovery document is that of the issuer %q; set discoveryUrl to that",
				printable(m.Issuer)))
	}
	for _, endpoint := range []struct {
		to   *string
		from string
	}{
		{&p.Authorization, m.Authorization}, {&p.Token, m.Token}, {&p.Resource, m.UserInfo}, {&p.JWKS, m.JWKS},
		{&p.Introspection, m.Introspection},
	} {
		if *endpoint.to == "" {
			if endpoint.from != "" && !strings.HasPrefix(endpoint.from, "https://") {
				return providerError(p.Provider, "its discovery document names an endpoint without https")
			}
			*endpoint.to = endpoint.from
		}
	}
	if p.Authorization == "" || p.Token == "" {
		return providerError(p.Provider, "its discovery document lacks the authorization or the token endpoint")
	}
	p.Issuer, p.takesPKCE = m.Issuer, slices.Contains(m.Challenges, "S256")
	p.secretInHeader = !slices.Contains(m.AuthMethods, "client_secret_post")
	methods := m.IntrospectionAuthMethods
	if len(methods) == 0 {
		methods = m.AuthMethods
	}
	p.introspectionByForm = slices.Contains(methods, "client_secret_post") &&
		!slices.Contains(methods, "client_secret_basic")
	p.algorithms = slices.DeleteFunc(m.Algorithms,
		func(name string) bool { return !slices.Contains(asymmetricAlgorithms, name) })
	return nil
}

const (
	// minLifetime and maxLifetime bound how long a document is cached, whatever its Cache-Control
	// says; defaultLifetime is for a document without one.
	minLifetime     = time.Minute
	maxLifetime     = 24 * time.Hour
	defaultLifetime = time.Hour
	// maxDocuments bounds the number of cached documents.
	maxDocuments = 1000
)

// documentCache is the cache of discovery documents and key sets (JWKS). Each is cached for the
// lifetime that the provider says.
type documentCache struct {
	flights singleflight.Group

	mu      sync.Mutex
	entries map[string]document
}

type document struct {
	body    []byte
	fetched time.Time
	until   time.Time
}

type statusError int

func (s statusError) Error() string { return statusText(int(s)) }

// document returns a document of a provider from the cache, or fetches it, once for all concurrent
// callers. fresh asks for a newer document than the cached one, which is fetched at most once in
// minLifetime.
func (c *Client) document(ctx context.Context, address string, fresh bool) ([]byte, error) {
	d, now := c.documents, c.now()
	d.mu.Lock()
	cached, known := d.entries[address]
	d.mu.Unlock()
	if known && now.Before(cached.until) && (!fresh || now.Before(cached.fetched.Add(minLifetime))) {
		return cached.body, nil
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
		d.put(address, document{body, now, now.Add(lifetime(answer.Header.Get("Cache-Control")))})
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

// put caches a document and evicts expired ones, or any where the cache is full.
func (d *documentCache) put(address string, doc document) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for other, kept := range d.entries {
		if len(d.entries) < maxDocuments && kept.until.After(doc.fetched) {
			continue
		}
		delete(d.entries, other)
	}
	d.entries[address] = doc
}

// lifetime returns how long a document is cached.
func lifetime(cacheControl string) time.Duration {
	return min(max(outbound.CacheAge(cacheControl, defaultLifetime), minLifetime), maxLifetime)
}
