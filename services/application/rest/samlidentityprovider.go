package rest

import (
	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/mappingrule"
	"github.com/doorward/doorward/pkg/rest"
	messages "github.com/doorward/doorward/pkg/saml"
	"github.com/doorward/doorward/services/application/saml"
)

// identityProviderView is the representation of an application as a SAML identity
// provider (docs/interface/applications.md#saml-identity-provider). Its metadata and
// its rules have its id.
type identityProviderView struct {
	rest.Head
	Status                           string     `json:"status"`
	SSOLoginEndpoint                 *href.Link `json:"ssoLoginEndpoint"`
	SignatureAlgorithm               string     `json:"signatureAlgorithm"`
	SHAFingerprint                   string     `json:"shaFingerprint"`
	X509SigningCert                  href.Link  `json:"x509SigningCert"`
	Metadata                         href.Link  `json:"metadata"`
	AttributeStatementMappingRules   href.Link  `json:"attributeStatementMappingRules"`
	RegisteredSAMLServiceProviders   href.Link  `json:"registeredSamlServiceProviders"`
	SAMLServiceProviderRegistrations href.Link  `json:"samlServiceProviderRegistrations"`
}

// identityMetadataView is the SAML metadata of an identity provider in JSON.
type identityMetadataView struct {
	rest.Head
	EntityID         string     `json:"entityId"`
	SSOLoginEndpoint *href.Link `json:"ssoLoginEndpoint"`
	X509SigningCert  href.Link  `json:"x509SigningCert"`
	IdentityProvider href.Link  `json:"identityProvider"`
}

func (v views) identityProvider(p saml.IdentityProvider) identityProviderView {
	return identityProviderView{
		Head:   v.identityHead("samlIdentityProviders", p),
		Status: p.Status, SSOLoginEndpoint: loginEndpoint(p), SignatureAlgorithm: p.SignatureAlgorithm,
		SHAFingerprint:                 messages.Fingerprint(p.Certificate),
		X509SigningCert:                v.Base.Link("x509certificates", p.CertificateID),
		Metadata:                       v.Base.Link("samlIdentityProviderMetadatas", p.ID),
		AttributeStatementMappingRules: v.Base.Link(string(mappingrule.AttributeStatement), p.ID),
		RegisteredSAMLServiceProviders: v.Base.Link("samlIdentityProviders", p.ID, "registeredSamlServiceProviders"),
		SAMLServiceProviderRegistrations: v.Base.Link("samlIdentityProviders", p.ID,
			"samlServiceProviderRegistrations"),
	}
}

func (v views) identityMetadata(p saml.IdentityProvider) identityMetadataView {
	return identityMetadataView{
		Head:     v.identityHead("samlIdentityProviderMetadatas", p),
		EntityID: saml.EntityID(v.Alias, p.ApplicationID), SSOLoginEndpoint: loginEndpoint(p),
		X509SigningCert:  v.Base.Link("x509certificates", p.CertificateID),
		IdentityProvider: v.Base.Link("samlIdentityProviders", p.ID),
	}
}

// identityDescriptor returns the SAML metadata of an identity provider in XML.
func (v views) identityDescriptor(p saml.IdentityProvider) ([]byte, error) {
	return messages.IdentityProviderMetadata(v.identityMetadata(p).EntityID, p.Certificate, p.LoginURL)
}

func (v views) identityHead(kind string, p saml.IdentityProvider) rest.Head {
	return rest.NewHead(v.Base.To(kind, p.ID), p.CreatedAt, p.ModifiedAt)
}

// loginEndpoint returns the link ssoLoginEndpoint: null for the console, which has no Client API to
// which a service provider could send a browser.
func loginEndpoint(p saml.IdentityProvider) *href.Link {
	if p.LoginURL == "" {
		return nil
	}
	return &href.Link{Href: p.LoginURL}
}
