package idsite

import (
	"context"
	"strings"

	"github.com/doorward/doorward/pkg/api/idsiteapi"
	"github.com/doorward/doorward/pkg/apierr"
)

var _ idsiteapi.API = (*Service)(nil)

// Certificate returns the TLS certificate of a tenant's custom domain to the gateway, which serves
// it by SNI (gateway/domaincertificate/domaincertificate.go). The private key is sealed with a key that the processes of
// the deployment share.
func (s *Service) Certificate(ctx context.Context, in idsiteapi.Domain) (idsiteapi.Certificate, error) {
	name := strings.ToLower(in.Name)
	site, err := s.SiteOfHost(ctx, name)
	if err != nil {
		return idsiteapi.Certificate{}, err
	}
	if !site.HasCustomDomain() || s.TLSStatus(site) != TLSValid {
		return idsiteapi.Certificate{}, apierr.NotFound.Because("the domain %q has no valid certificate", name)
	}
	pair, err := s.KeyPair(site)
	if err != nil {
		return idsiteapi.Certificate{}, err
	}
	if pair.Leaf.VerifyHostname(name) != nil {
		return idsiteapi.Certificate{}, apierr.NotFound.Because("the certificate of the tenant is not for %q", name)
	}
	key, err := s.ring.Open(site.TLSPrivateKeySealed, tlsKeyPurpose(site.TenantID))
	if err != nil {
		return idsiteapi.Certificate{}, err
	}
	return idsiteapi.Certificate{Chain: *site.TLSPublicCert,
		KeySealed: s.shared.Seal(key, idsiteapi.KeyPurpose(name))}, nil
}
