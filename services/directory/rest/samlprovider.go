package rest

import (
	"encoding/base64"
	"encoding/pem"
	"encoding/xml"

	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/rest"
	"github.com/doorward/doorward/services/directory"
	"github.com/doorward/doorward/services/directory/store"
)

const (
	mimeSAMLMetadata = "application/samlmetadata+xml"
	mimeCertificate  = "application/pkix-cert"
)

type samlMetadataView struct {
	rest.Head
	EntityID                             string    `json:"entityId"`
	AssertionConsumerServicePostEndpoint href.Link `json:"assertionConsumerServicePostEndpoint"`
	X509SigningCert                      href.Link `json:"x509SigningCert"`
}

func (v views) samlMetadata(p store.SAMLServiceProvider) samlMetadataView {
	return samlMetadataView{
		Head:                                 rest.Head{Href: v.base.To("samlServiceProviderMetadatas", p.ID), CreatedAt: rest.Time(p.CreatedAt), ModifiedAt: rest.Time(p.ModifiedAt)},
		EntityID:                             "urn:" + v.alias + ":directory:" + p.DirectoryID.String() + ":provider:sp",
		AssertionConsumerServicePostEndpoint: v.base.Link("directories", p.DirectoryID, "saml", "sso", "post"),
		X509SigningCert:                      v.base.Link("x509certificates", p.CertificateID),
	}
}

// entityDescriptor is the metadata of a service provider (SAML 2.0 Metadata,
// sections 2.3.2 and 2.4.4).
type entityDescriptor struct {
	XMLName  xml.Name `xml:"md:EntityDescriptor"`
	Metadata string   `xml:"xmlns:md,attr"`
	Digital  string   `xml:"xmlns:ds,attr"`
	EntityID string   `xml:"entityID,attr"`
	SP       struct {
		Signed    bool   `xml:"AuthnRequestsSigned,attr"`
		Protocols string `xml:"protocolSupportEnumeration,attr"`
		Key       struct {
			Use         string `xml:"use,attr"`
			Certificate string `xml:"ds:KeyInfo>ds:X509Data>ds:X509Certificate"`
		} `xml:"md:KeyDescriptor"`
		NameIDFormat string `xml:"md:NameIDFormat"`
		Consumer     struct {
			Binding  string `xml:"Binding,attr"`
			Location string `xml:"Location,attr"`
			Index    int    `xml:"index,attr"`
			Default  bool   `xml:"isDefault,attr"`
		} `xml:"md:AssertionConsumerService"`
	} `xml:"md:SPSSODescriptor"`
}

func (v views) entityDescriptor(p store.SAMLServiceProvider) entityDescriptor {
	view := v.samlMetadata(p)
	e := entityDescriptor{Metadata: "urn:oasis:names:tc:SAML:2.0:metadata", Digital: "http://www.w3.org/2000/09/xmldsig#", EntityID: view.EntityID}
	e.SP.Signed, e.SP.Protocols = true, "urn:oasis:names:tc:SAML:2.0:protocol"
	e.SP.Key.Use = "signing"
	if block, _ := pem.Decode([]byte(p.Certificate)); block != nil {
		e.SP.Key.Certificate = base64.StdEncoding.EncodeToString(block.Bytes)
	}
	e.SP.NameIDFormat = "urn:oasis:names:tc:SAML:1.1:nameid-format:emailAddress"
	e.SP.Consumer.Binding = "urn:oasis:names:tc:SAML:2.0:bindings:HTTP-POST"
	e.SP.Consumer.Location = view.AssertionConsumerServicePostEndpoint.Href
	e.SP.Consumer.Default = true
	return e
}

// samlMetadata answers in XML unless the client asks for JSON.
func samlMetadata(svc *directory.Service, v views) fiber.Handler {
	return func(c *fiber.Ctx) error {
		at, err := rest.Ref(c)
		if err != nil {
			return err
		}
		p, err := svc.SAMLServiceProvider(c.UserContext(), at)
		if err != nil {
			return err
		}
		c.Vary(fiber.HeaderAccept)
		kind := rest.Preferred(c, mimeSAMLMetadata, fiber.MIMEApplicationXML, fiber.MIMEApplicationJSON)
		switch kind {
		case fiber.MIMEApplicationJSON:
			return rest.OK(c, v.samlMetadata(p))
		case "":
			kind = mimeSAMLMetadata
		}
		body, err := xml.Marshal(v.entityDescriptor(p))
		if err != nil {
			return err
		}
		return document(c, kind, append([]byte(xml.Header), body...))
	}
}

// certificate answers a certificate in PEM.
func certificate(svc *directory.Service) fiber.Handler {
	return func(c *fiber.Ctx) error {
		at, err := rest.Ref(c)
		if err != nil {
			return err
		}
		pem, err := svc.Certificate(c.UserContext(), at)
		if err != nil {
			return err
		}
		return document(c, mimeCertificate, []byte(pem))
	}
}

// document answers 200 with something other than JSON.
func document(c *fiber.Ctx, kind string, body []byte) error {
	c.Set(fiber.HeaderContentType, kind)
	c.Set(fiber.HeaderCacheControl, "no-cache")
	return c.Send(body)
}
