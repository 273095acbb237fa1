package gateway

import (
	"context"
	"crypto/tls"
	"errors"
	"strings"
	"time"

	"github.com/hashicorp/golang-lru/v2/expirable"
	"golang.org/x/sync/singleflight"

	"github.com/doorward/doorward/pkg/api/idsiteapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/secure"
)

const (
	// certificateAge bounds how long a certificate is served after it was changed
	// or removed.
	certificateAge = 30 * time.Second
	// maxCertificates bounds the domains that are kept, with and without a
	// certificate.
	maxCertificates = 4096
	// certificateTimeout bounds a lookup during a handshake.
	certificateTimeout = 3 * time.Second
)

// certificates finds the certificate of a tenant's own domain by the name that the
// client sends (RFC 6066, section 3). All other names have the deployment's.
type certificates struct {
	idsite  idsiteapi.API
	ring    *secure.Keyring
	found   *expirable.LRU[string, *tls.Certificate] // nil: the domain has none
	flights singleflight.Group
}

func newCertificates(idsite idsiteapi.API, ring *secure.Keyring) *certificates {
	return &certificates{idsite: idsite, ring: ring, found: expirable.NewLRU[string, *tls.Certificate](maxCertificates, nil, certificateAge)}
}

// of returns the certificate for a handshake, or nil for the deployment's own.
func (c *certificates) of(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	name := strings.ToLower(hello.ServerName)
	if !strings.Contains(name, ".") || strings.HasSuffix(name, ".localhost") {
		return nil, nil
	}
	if found, ok := c.found.Get(name); ok {
		return found, nil
	}
	found, err, _ := c.flights.Do(name, func() (any, error) {
		ctx, cancel := context.WithTimeout(caller.Into(context.Background(), caller.Caller{}), certificateTimeout)
		defer cancel()
		pair, err := c.load(ctx, name)
		if err != nil && !errors.Is(err, apierr.NotFound) {
			return pair, err
		}
		c.found.Add(name, pair)
		return pair, nil
	})
	if err != nil {
		return nil, nil // the deployment's certificate at least identifies the server
	}
	return found.(*tls.Certificate), nil
}

func (c *certificates) load(ctx context.Context, name string) (*tls.Certificate, error) {
	answer, err := c.idsite.Certificate(ctx, idsiteapi.Domain{Name: name})
	if err != nil {
		return nil, err
	}
	key, err := c.ring.Open(answer.KeySealed, idsiteapi.KeyPurpose(name))
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair([]byte(answer.Chain), []byte(key.Reveal()))
	return &pair, err
}
