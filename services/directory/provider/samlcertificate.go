package provider

import (
	"context"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"

	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/saml"
	"github.com/doorward/doorward/services/directory/store"
)

var samlCertificates, _ = otel.Meter("directory").Int64Gauge("doorward_directory_saml_certificates",
	metric.WithDescription("SAML directories whose identity provider certificate expires within 30 days "+
		"(state expiring), has expired (expired) or has not begun (not_yet_valid)"))

// WatchSAMLCertificates is the worker that warns of signing certificates of identity providers by their
// dates. The logins of their directories go on.
func (s *Service) WatchSAMLCertificates(ctx context.Context) error {
	return s.certificateCheck().Watch(ctx)
}

func (s *Service) certificateCheck() saml.CertificateCheck[store.SAMLCertificate] {
	return saml.CertificateCheck[store.SAMLCertificate]{
		Partner: "identity provider", Attribute: "directory", Gauge: samlCertificates, Now: s.now,
		Page: s.store.SAMLCertificates,
		Certificates: func(c store.SAMLCertificate) (id.Ref, []string) {
			return id.Ref{Tenant: c.TenantID, ID: c.DirectoryID}, c.Settings.SigningCertificates()
		},
	}
}
