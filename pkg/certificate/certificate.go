// Package certificate has the TLS certificate of a process, which is reloaded when its files change
// (certificate renewal without a restart).
package certificate

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"github.com/doorward/doorward/pkg/run"
	"github.com/doorward/doorward/pkg/secure"
)

// reloadInterval is how often the files of a certificate are read again.
var reloadInterval = time.Minute

// Pair is a certificate chain and the private key of its first certificate, in PEM.
type Pair struct {
	Chain string
	Key   secure.Secret
}

// Certificate is the TLS certificate of a process.
type Certificate struct {
	read    func() (Pair, error)
	pair    Pair
	current atomic.Pointer[tls.Certificate]
}

// Open loads a certificate, and reloads it each minute until the process ends. The metric
// doorward_certificate_not_after_timestamp_seconds is its expiry, with labels that tell it from another of the process.
func Open(p *run.Process, read func() (Pair, error), labels ...attribute.KeyValue) (*Certificate, error) {
	c := &Certificate{read: read}
	if err := c.load(); err != nil {
		return nil, err
	}
	if err := c.registerMetrics(labels); err != nil {
		return nil, err
	}
	p.Go("certificate", c.reloadLoop)
	return c, nil
}

// Current returns the certificate that was loaded last, for tls.Config{GetCertificate: …}.
func (c *Certificate) Current() *tls.Certificate { return c.current.Load() }

// reloadLoop reloads the certificate each reloadInterval. While a renewal has written the chain but
// not the key yet, they do not match: then the former certificate stays until the next interval.
func (c *Certificate) reloadLoop(ctx context.Context) error {
	ticker := time.NewTicker(reloadInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		former := c.Current()
		if err := c.load(); err != nil {
			slog.WarnContext(ctx, "reload of the TLS certificate failed, keeping the former", "error", err.Error())
		} else if c.Current() != former {
			slog.InfoContext(ctx, "TLS certificate reloaded", "until", c.Current().Leaf.NotAfter)
		}
	}
}

// load reads the pair and, if it has changed, makes it the current certificate.
func (c *Certificate) load() error {
	pair, err := c.read()
	if err != nil || pair == c.pair {
		return err
	}
	parsed, err := tls.X509KeyPair([]byte(pair.Chain), []byte(pair.Key.Reveal()))
	if err != nil {
		return fmt.Errorf("read the TLS certificate and its key: %w", err)
	}
	c.pair = pair
	c.current.Store(&parsed)
	return nil
}
