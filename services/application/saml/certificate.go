package saml

import (
	"context"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"

	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/saml"
	"github.com/doorward/doorward/services/application/store"
)

var samlCertificates, _ = otel.Meter("application").Int64Gauge("doorward_application_saml_certificates",
	metric.WithDescription(
		"SAML service providers whose certificate expires within 30 days (state expiring), has expired (expired) "+
			"or has not begun (not_yet_valid)"))

// CertificateStatus returns the state of the certificate of a registered service provider
// (pkg/saml/certificate.go), or "" where it has none.
func (s *Service) CertificateStatus(p store.SAMLServiceProvider) string {
	return saml.CertificateStatus(s.now(), certificatesOf(p)...)
}

func certificatesOf(p store.SAMLServiceProvider) []string {
	if p.EncodedX509Certificate == nil {
		return nil
	}
	return []string{*p.EncodedX509Certificate}
}

// WatchSAMLCertificates is the worker that warns of the certificates of registered service providers by
// their dates.
func (s *Service) WatchSAMLCertificates(ctx context.Context) error {
	return s.certificateCheck().Watch(ctx)
}

func (s *Service) certificateCheck() saml.CertificateCheck[store.SAMLServiceProvider] {
	return saml.CertificateCheck[store.SAMLServiceProvider]{
		Partner: "service provider", Attribute: "service_provider", Gauge: samlCertificates, Now: s.now,
		Page: s.store.SAMLCertificates,
		Certificates: func(p store.SAMLServiceProvider) (id.Ref, []string) {
			return id.Ref{Tenant: p.TenantID, ID: p.ID}, certificatesOf(p)
		},
	}
}
