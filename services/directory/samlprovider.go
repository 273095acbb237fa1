package directory

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"time"

	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/directory/store"
)

// certificateYears is how long the certificate of a SAML directory is good.
// Identity providers take the key from it and mostly ignore its dates.
const certificateYears = 10

// newSAMLServiceProvider makes the key pair of a new SAML directory and its
// self-signed certificate, without storing them. It takes some tenths of a
// second, so no transaction may be open. The key is an RSA one, because the two
// algorithms that sign requests (resolutions, section 4.6) are.
func (s *Service) newSAMLServiceProvider(p store.Provider) (*store.SAMLServiceProvider, error) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, err
	}
	template := x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: p.DirectoryID.String()}, SignatureAlgorithm: x509.SHA256WithRSA,
		NotBefore: p.CreatedAt.Add(-time.Hour), NotAfter: p.CreatedAt.AddDate(certificateYears, 0, 0), // an hour for clocks that are late
		KeyUsage: x509.KeyUsageDigitalSignature, BasicConstraintsValid: true,
	}
	signed, err := x509.CreateCertificate(rand.Reader, &template, &template, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	sp := store.SAMLServiceProvider{
		TenantID: p.TenantID, ID: id.New(p.CreatedAt), DirectoryID: p.DirectoryID, CertificateID: id.New(p.CreatedAt),
		Certificate: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed})), CreatedAt: p.CreatedAt, ModifiedAt: p.CreatedAt,
	}
	sp.PrivateKeySealed = s.ring.Seal(secure.Secret(private), samlKeyPurpose(sp.ID))
	return &sp, nil
}

func samlKeyPurpose(serviceProvider id.ID) string {
	return "directory.saml/" + serviceProvider.String()
}

// SAMLServiceProvider gives what the metadata of a SAML directory tells, or
// apierr.NotFound.
func (s *Service) SAMLServiceProvider(ctx context.Context, metadata id.Ref) (store.SAMLServiceProvider, error) {
	return s.store.SAMLServiceProvider(ctx, metadata.Tenant, metadata.ID)
}

// Certificate gives a certificate in PEM, or apierr.NotFound.
func (s *Service) Certificate(ctx context.Context, at id.Ref) (string, error) {
	return s.store.Certificate(ctx, at.Tenant, at.ID)
}
