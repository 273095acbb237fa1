package directory

import (
	"context"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/doorward/doorward/pkg/purge"
	"github.com/doorward/doorward/pkg/saml"
	"github.com/doorward/doorward/services/directory/store"
)

const (
	// certificateWarning is how long before its expiry a certificate is reported.
	certificateWarning = 30 * 24 * time.Hour
	// certificateCheck is the time between two checks of all certificates.
	certificateCheck = 12 * time.Hour
	// certificateBatch is how many directories one query reads.
	certificateBatch = 500
)

// WatchSAMLCertificates is the worker that warns of signing certificates of identity providers
// before they expire: then the logins of their directories fail.
func (s *Service) WatchSAMLCertificates(ctx context.Context) error {
	return purge.Periodically(certificateCheck, "check of SAML certificates failed, retrying", func(ctx context.Context) error {
		_, _, err := s.checkSAMLCertificates(ctx)
		return err
	})(ctx)
}

// checkSAMLCertificates counts the directories whose certificates expire soon or have expired,
// records both as metrics, and logs each directory.
func (s *Service) checkSAMLCertificates(ctx context.Context) (expiring, expired int64, err error) {
	err = s.store.EachShard(ctx, func(ctx context.Context) error {
		expiringHere, expiredHere, err := s.countSAMLCertificates(ctx)
		expiring, expired = expiring+expiringHere, expired+expiredHere
		return err
	})
	if err != nil {
		return expiring, expired, err
	}
	samlCertificates.Record(ctx, expiring, metric.WithAttributes(attribute.String("state", "expiring")))
	samlCertificates.Record(ctx, expired, metric.WithAttributes(attribute.String("state", "expired")))
	return expiring, expired, nil
}

// countSAMLCertificates is checkSAMLCertificates for one database, without the metrics.
func (s *Service) countSAMLCertificates(ctx context.Context) (expiring, expired int64, err error) {
	var after store.SAMLCertificate
	for {
		found, err := s.store.SAMLCertificates(ctx, after, certificateBatch)
		if err != nil {
			return expiring, expired, err
		}
		for _, c := range found {
			until := saml.CertificateEnd(c.Current)
			if next := saml.CertificateEnd(c.Next); next.After(until) {
				until = next
			}
			switch remaining := until.Sub(s.now()); {
			case remaining > certificateWarning:
				continue
			case remaining > 0:
				expiring++
			default:
				expired++
			}
			slog.WarnContext(ctx, "certificate of a SAML identity provider expires or has expired; set encodedX509SigningCertNext of its directory",
				"tenant", c.TenantID.String(), "directory", c.DirectoryID.String(), "until", until)
		}
		if len(found) < certificateBatch {
			return expiring, expired, nil
		}
		after = found[len(found)-1]
	}
}
