package rest

import (
	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/rest"
	"github.com/doorward/doorward/pkg/saml"
	"github.com/doorward/doorward/services/directory/provider"
	"github.com/doorward/doorward/services/directory/store"
)

type samlMetadataView struct {
	rest.Head
	EntityID                             string    `json:"entityId"`
	AssertionConsumerServicePostEndpoint href.Link `json:"assertionConsumerServicePostEndpoint"`
	X509SigningCert                      href.Link `json:"x509SigningCert"`
}

func (v views) samlMetadata(p store.SAMLServiceProvider) samlMetadataView {
	return samlMetadataView{
		Head: rest.NewHead(v.Base.To("samlServiceProviderMetadatas", p.ID), p.CreatedAt,
			p.ModifiedAt),
		EntityID:                             provider.SAMLEntityID(v.Alias, p.DirectoryID),
		AssertionConsumerServicePostEndpoint: v.Base.Link("directories", p.DirectoryID, "saml", "sso", "post"),
		X509SigningCert:                      v.Base.Link("x509certificates", p.CertificateID),
	}
}

// samlDescriptor is the service provider metadata in XML.
func (v views) samlDescriptor(p store.SAMLServiceProvider) ([]byte, error) {
	view := v.samlMetadata(p)
	return saml.ServiceProviderMetadata(
		view.EntityID, p.Certificate, view.AssertionConsumerServicePostEndpoint.Href, v.Base.Host()+"/sso/logout",
	)
}
