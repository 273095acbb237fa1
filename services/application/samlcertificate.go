package application

import (
	"context"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/doorward/doorward/pkg/purge"
	"github.com/doorward/doorward/pkg/saml"
	"github.com/doorward/doorward/services/application/store"
)

const (
	// certificateCheck is the time between two checks of all certificates.
	certificateCheck = 12 * time.Hour
	// certificateBatch is how many service providers one query reads.
	certificateBatch = 500
)

// certificateStates are the values of the label state of the metric, by the states that are reported.
var certificateStates = map[string]string{
	saml.CertificateExpiresSoon: "expiring", saml.CertificateExpired: "expired", saml.CertificateNotYetValid: "not_yet_valid",
}

// CertificateStatus returns the state of the certificate of a registered service provider
// (pkg/saml/certificate.go), or "" where it has none.
func (s *Service) CertificateStatus(p store.SAMLServiceProvider) string {
	if p.EncodedX509Certificate == nil {
		return ""
	}
	return saml.CertificateStatus(s.now(), *p.EncodedX509Certificate)
}

// WatchSAMLCertificates is the worker that warns of the certificates of registered service providers by
// their dates, as the directory service does for those of identity providers
// (services/directory/samlcertificate.go). Requests that their keys have signed are accepted all the same.
func (s *Service) WatchSAMLCertificates(ctx context.Context) error {
	return purge.Periodically(certificateCheck, "check of SAML certificates failed, retrying", func(ctx context.Context) error {
		_, err := s.checkSAMLCertificates(ctx)
		return err
	})(ctx)
}

// checkSAMLCertificates counts the service providers by the state of their certificates, records the counts
// as metrics, and logs each whose state is not saml.CertificateValid.
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
	var after store.SAMLServiceProvider
	for {
		found, err := s.store.SAMLCertificates(ctx, after, certificateBatch)
		if err != nil {
			return err
		}
		for _, p := range found {
			state := s.CertificateStatus(p)
			counts[state]++
			if _, isReported := certificateStates[state]; isReported {
				slog.WarnContext(ctx, "certificate of a SAML service provider is not valid for much longer, or not now; its key is used all the same",
					"tenant", p.TenantID.String(), "service_provider", p.ID.String(), "state", state)
			}
		}
		if len(found) < certificateBatch {
			return nil
		}
		after = found[len(found)-1]
	}
}
