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
	// certificateCheck is the time between two checks of all certificates.
	certificateCheck = 12 * time.Hour
	// certificateBatch is how many directories one query reads.
	certificateBatch = 500
)

// certificateStates are the values of the label state of the metric, by the states that are reported.
var certificateStates = map[string]string{
	saml.CertificateExpiresSoon: "expiring", saml.CertificateExpired: "expired", saml.CertificateNotYetValid: "not_yet_valid",
}

// WatchSAMLCertificates is the worker that warns of signing certificates of identity providers by their
// dates. The logins of their directories go on (pkg/saml/certificate.go), but a provider that follows the
// dates will sign with another key soon.
func (s *Service) WatchSAMLCertificates(ctx context.Context) error {
	return purge.Periodically(certificateCheck, "check of SAML certificates failed, retrying", func(ctx context.Context) error {
		_, err := s.checkSAMLCertificates(ctx)
		return err
	})(ctx)
}

// checkSAMLCertificates counts the directories by the state of their certificates, records the counts as
// metrics, and logs each directory whose state is not saml.CertificateValid.
func (s *Service) checkSAMLCertificates(ctx context.Context) (counts map[string]int64, err error) {
	counts = map[string]int64{}
	if err := s.store.EachShard(ctx, func(ctx context.Context) error { return s.countSAMLCertificates(ctx, counts) }); err != nil {
		return counts, err
	}
	for state, label := range certificateStates {
		samlCertificates.Record(ctx, counts[state], metric.WithAttributes(attribute.String("state", label)))
	}
	return counts, nil
}

// countSAMLCertificates is checkSAMLCertificates for one database, without the metrics.
func (s *Service) countSAMLCertificates(ctx context.Context, counts map[string]int64) error {
	var after store.SAMLCertificate
	for {
		found, err := s.store.SAMLCertificates(ctx, after, certificateBatch)
		if err != nil {
			return err
		}
		for _, c := range found {
			state := saml.CertificateStatus(s.now(), c.Settings.SigningCertificates()...)
			counts[state]++
			if _, isReported := certificateStates[state]; isReported {
				slog.WarnContext(ctx, "certificate of a SAML identity provider is not valid for much longer, or not now; its key is used all the same",
					"tenant", c.TenantID.String(), "directory", c.DirectoryID.String(), "state", state)
			}
		}
		if len(found) < certificateBatch {
			return nil
		}
		after = found[len(found)-1]
	}
}
