package provider

import (
	"context"

	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/saml"
	"github.com/doorward/doorward/services/directory/store"
)

// newSAMLServiceProvider generates the key pair of a new SAML directory, without storing it. It
// takes long: no transaction may be open.
func (s *Service) newSAMLServiceProvider(p store.Provider) (*store.SAMLServiceProvider, error) {
	pair, err := saml.NewKeyPair(p.DirectoryID.String(), p.CreatedAt)
	if err != nil {
		return nil, err
	}
	sp := store.SAMLServiceProvider{
		TenantID: p.TenantID, ID: id.New(p.CreatedAt), DirectoryID: p.DirectoryID, CertificateID: id.New(p.CreatedAt),
		Certificate: pair.Certificate, CreatedAt: p.CreatedAt, ModifiedAt: p.CreatedAt,
	}
	private, err := pair.PrivateKey()
	sp.PrivateKeySealed = s.ring.Seal(private, samlKeyPurpose(sp.ID))
	return &sp, err
}

func samlKeyPurpose(serviceProvider id.ID) string {
	return "directory.saml/" + serviceProvider.String()
}

// SAMLServiceProvider returns what the service provider metadata of a SAML directory contains, or
// apierr.NotFound.
func (s *Service) SAMLServiceProvider(ctx context.Context, metadata id.Ref) (store.SAMLServiceProvider, error) {
	return s.store.SAMLServiceProvider(ctx, metadata.Tenant, metadata.ID)
}

// Certificate returns the signing certificate of a SAML directory in PEM, or apierr.NotFound.
func (s *Service) Certificate(ctx context.Context, at id.Ref) (string, error) {
	return s.store.Certificate(ctx, at.Tenant, at.ID)
}
