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
	// certificateWarning is how long before its end a certificate is warned of.
	certificateWarning = 30 * 24 * time.Hour
	// certificateCheck is the pause between two checks of all certificates.
	certificateCheck = 12 * time.Hour
	// certificateBatch is how many directories are read at once.
	certificateBatch = 500
)

// WatchSAMLCertificates is the worker that warns of the certificates of identity
// providers before they end, and with them the logins of their directories.
func (s *Service) WatchSAMLCertificates(ctx context.Context) error {
	return purge.EveryUnmetered(certificateCheck, "check of SAML certificates failed, retrying", func(ctx context.Context) error {
		_, _, err := s.checkSAMLCertificates(ctx)
		return err
	})(ctx)
}

// checkSAMLCertificates counts the directories whose certificates end soon, or have
// ended, and logs each.
func (s *Service) checkSAMLCertificates(ctx context.Context) (expiring, expired int64, err error) {
	err = s.store.EachShard(ctx, func(ctx context.Context) error {
		more, ended, err := s.countSAMLCertificates(ctx)
		expiring, expired = expiring+more, expired+ended
		return err
	})
	if err != nil {
		return expiring, expired, err
	}
	samlCertificates.Record(ctx, expiring, metric.WithAttributes(attribute.String("state", "expiring")))
	samlCertificates.Record(ctx, expired, metric.WithAttributes(attribute.String("state", "expired")))
	return expiring, expired, nil
}

func (s *Service) countSAMLCertificates(ctx context.Context) (expiring, expired int64, err error) {
	var behind store.SAMLCertificate
	for {
		found, err := s.store.SAMLCertificates(ctx, behind, certificateBatch)
		if err != nil {
			return expiring, expired, err
		}
		for _, c := range found {
			until := saml.CertificateEnd(c.Current)
			if next := saml.CertificateEnd(c.Next); next.After(until) {
				until = next
			}
			switch left := until.Sub(s.now()); {
			case left > certificateWarning:
				continue
			case left > 0:
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
		behind = found[len(found)-1]
	}
}
