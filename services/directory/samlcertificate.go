package directory

import (
	"context"

	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/saml"
	"github.com/doorward/doorward/services/directory/store"
)

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
