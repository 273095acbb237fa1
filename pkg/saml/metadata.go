package saml

import (
	"encoding/base64"
	"encoding/xml"
)

// The formats of a subject's name (SAML 2.0 core, section 8.3).
const (
	EmailNameID      = "urn:oasis:names:tc:SAML:1.1:nameid-format:emailAddress"
	PersistentNameID = "urn:oasis:names:tc:SAML:2.0:nameid-format:persistent"
	TransientNameID  = "urn:oasis:names:tc:SAML:2.0:nameid-format:transient"
)

// The bindings of messages (SAML 2.0 bindings, sections 3.4 and 3.5).
const (
	redirectBinding = "urn:oasis:names:tc:SAML:2.0:bindings:HTTP-Redirect"
	postBinding     = "urn:oasis:names:tc:SAML:2.0:bindings:HTTP-POST"
)

const protocol = "urn:oasis:names:tc:SAML:2.0:protocol"

// entityDescriptor is the metadata of a party in one of its two roles (SAML 2.0
// metadata, sections 2.3.2, 2.4.3 and 2.4.4).
type entityDescriptor struct {
	XMLName          xml.Name          `xml:"md:EntityDescriptor"`
	Metadata         string            `xml:"xmlns:md,attr"`
	Digital          string            `xml:"xmlns:ds,attr"`
	EntityID         string            `xml:"entityID,attr"`
	ServiceProvider  *serviceProvider  `xml:"md:SPSSODescriptor"`
	IdentityProvider *identityProvider `xml:"md:IDPSSODescriptor"`
}

// key is a public key of a party, for signing or for encryption.
type key struct {
	Use         string `xml:"use,attr"`
	Certificate string `xml:"ds:KeyInfo>ds:X509Data>ds:X509Certificate"`
}

type serviceProvider struct {
	Signed       bool     `xml:"AuthnRequestsSigned,attr"`
	Protocols    string   `xml:"protocolSupportEnumeration,attr"`
	Keys         []key    `xml:"md:KeyDescriptor"`
	Logout       endpoint `xml:"md:SingleLogoutService"`
	NameIDFormat string   `xml:"md:NameIDFormat"`
	Consumer     consumer `xml:"md:AssertionConsumerService"`
}

type consumer struct {
	Binding  string `xml:"Binding,attr"`
	Location string `xml:"Location,attr"`
	Index    int    `xml:"index,attr"`
	Default  bool   `xml:"isDefault,attr"`
}

type identityProvider struct {
	Protocols     string     `xml:"protocolSupportEnumeration,attr"`
	Key           key        `xml:"md:KeyDescriptor"`
	NameIDFormats []string   `xml:"md:NameIDFormat"`
	SignOn        []endpoint `xml:"md:SingleSignOnService"`
}

type endpoint struct {
	Binding  string `xml:"Binding,attr"`
	Location string `xml:"Location,attr"`
}

// ServiceProviderMetadata describes a service provider that signs its requests
// with the key of a certificate and decrypts assertions with it, takes assertions at
// consumerURL by HTTP-POST, and the answers to its logout requests at logoutURL by
// HTTP-Redirect.
func ServiceProviderMetadata(entityID, certificate, consumerURL, logoutURL string) ([]byte, error) {
	return describe(entityDescriptor{EntityID: entityID, ServiceProvider: &serviceProvider{
		Signed: true, Protocols: protocol, NameIDFormat: EmailNameID,
		Keys:     []key{keyOf("signing", certificate), keyOf("encryption", certificate)},
		Logout:   endpoint{redirectBinding, logoutURL},
		Consumer: consumer{Binding: postBinding, Location: consumerURL, Default: true},
	}})
}

// IdentityProviderMetadata describes an identity provider that signs its
// assertions with the key of a certificate and takes requests at signOnURL by
// HTTP-Redirect and HTTP-POST; an empty one leaves the endpoint out.
func IdentityProviderMetadata(entityID, certificate, signOnURL string) ([]byte, error) {
	role := identityProvider{
		Protocols: protocol, Key: keyOf("signing", certificate),
		NameIDFormats: []string{EmailNameID, PersistentNameID, TransientNameID},
	}
	if signOnURL != "" {
		role.SignOn = []endpoint{{redirectBinding, signOnURL}, {postBinding, signOnURL}}
	}
	return describe(entityDescriptor{EntityID: entityID, IdentityProvider: &role})
}

func keyOf(use, certificate string) key {
	return key{Use: use, Certificate: base64.StdEncoding.EncodeToString(der(certificate))}
}

func describe(e entityDescriptor) ([]byte, error) {
	e.Metadata, e.Digital = "urn:oasis:names:tc:SAML:2.0:metadata", "http://www.w3.org/2000/09/xmldsig#"
	body, err := xml.Marshal(e)
	return append([]byte(xml.Header), body...), err
}
