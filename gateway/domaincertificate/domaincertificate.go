// Package domaincertificate has the TLS certificates of the domains that tenants have for their hosted pages.
package domaincertificate

import (
	"context"
	"crypto/tls"
	"errors"
	"strings"
	"time"

	"github.com/doorward/doorward/pkg/api/idsiteapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/cache"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/secure"
)

const (
	// certificateAge is the TTL of the cache: how long a certificate may be served after it was
	// changed or removed.
	certificateAge = 30 * time.Second
	// maxCertificates bounds the domains in the cache, with and without a certificate.
	maxCertificates = 4096
	// certificateTimeout bounds the lookup of a certificate during a TLS handshake.
	certificateTimeout = 3 * time.Second
)

// Certificates finds the TLS certificate of a custom domain of a tenant by the name that
// the client sends (SNI, RFC 6066, section 3). All other names have the certificate of the
// deployment, which pkg/certificate/certificate.go loads and reloads.
type Certificates struct {
	idsite           idsiteapi.API
	rings            secure.Keyrings
	isDeploymentHost func(host string) bool                 // such hosts have the deployment's certificate
	cache            *cache.Cache[string, *tls.Certificate] // nil: the domain has none
}

// New returns the certificates. isOwn says which hosts have the certificate of the deployment.
func New(idsite idsiteapi.API, rings secure.Keyrings, isOwn func(host string) bool) *Certificates {
	return &Certificates{idsite: idsite, rings: rings, isDeploymentHost: isOwn,
		cache: cache.New(cache.Config[string, *tls.Certificate]{
			Name: "gateway.certificates", Size: maxCertificates, MaxAge: certificateAge, Now: time.Now,
		})}
}

// ForHandshake returns the certificate for a handshake, or nil for the certificate of the
// deployment.
func (c *Certificates) ForHandshake(hello *tls.ClientHelloInfo) *tls.Certificate {
	name := strings.ToLower(hello.ServerName)
	if !strings.Contains(name, ".") || strings.HasSuffix(name, ".localhost") || c.isDeploymentHost(name) {
		return nil
	}
	ctx := caller.Into(context.Background(), caller.Caller{})
	found, err := c.cache.Get(ctx, name, func(ctx context.Context) (*tls.Certificate, error) {
		ctx, cancel := context.WithTimeout(ctx, certificateTimeout)
		defer cancel()
		pair, err := c.load(ctx, name)
		if errors.Is(err, apierr.NotFound) {
			return nil, nil
		}
		return pair, err
	})
	if err != nil {
		return nil // the deployment's certificate at least identifies the server
	}
	return found
}

func (c *Certificates) load(ctx context.Context, name string) (*tls.Certificate, error) {
	answer, err := c.idsite.Certificate(ctx, idsiteapi.Domain{Name: name})
	if err != nil {
		return nil, err
	}
	key, err := c.rings.Open(answer.KeySealed, idsiteapi.KeyPurpose(name))
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair([]byte(answer.Chain), []byte(key.Reveal()))
	return &pair, err
}
