package saml

import (
	"encoding/xml"
	"errors"
	"fmt"
	"slices"
	"strings"

	"encoding/pem"

	"github.com/doorward/doorward/pkg/field"
)

// MaxMetadata is the largest metadata of an identity provider, in bytes.
const MaxMetadata = 512 << 10

// maxMetadataCertificates is how many signing certificates metadata may name.
const maxMetadataCertificates = 10

// IdentityProvider is what a service provider needs to know of an identity provider.
type IdentityProvider struct {
	EntityID     string
	LoginURL     string   // for requests by HTTP-Redirect
	LogoutURL    string   // the same; empty: it has no single logout
	Certificates []string // in PEM; it signs with the key of any of them
}

// entity is the part of metadata that is read of an identity provider (SAML 2.0 metadata, sections 2.3.1,
// 2.3.2 and 2.4.3). The document may be one entity, or a list with one identity provider in it.
type entity struct {
	XMLName  xml.Name
	EntityID string `xml:"entityID,attr"`
	IDP      []struct {
		Keys []struct {
			Use          string   `xml:"use,attr"`
			Certificates []string `xml:"http://www.w3.org/2000/09/xmldsig# KeyInfo>X509Data>X509Certificate"`
		} `xml:"urn:oasis:names:tc:SAML:2.0:metadata KeyDescriptor"`
		SignOn []endpoint `xml:"urn:oasis:names:tc:SAML:2.0:metadata SingleSignOnService"`
		Logout []endpoint `xml:"urn:oasis:names:tc:SAML:2.0:metadata SingleLogoutService"`
	} `xml:"urn:oasis:names:tc:SAML:2.0:metadata IDPSSODescriptor"`
	Entities []entity `xml:"urn:oasis:names:tc:SAML:2.0:metadata EntityDescriptor"`
}

// ReadMetadata reads the metadata of an identity provider. It verifies no signature: whoever names the
// document, or its https address, vouches for it. The error says what is wrong with the document.
func ReadMetadata(text []byte) (out IdentityProvider, err error) {
	var document entity
	switch err := xml.Unmarshal(text, &document); {
	case len(text) > MaxMetadata:
		return out, fmt.Errorf("it has more than %d bytes", MaxMetadata)
	case err != nil:
		return out, errors.New("it is not well-formed XML")
	case document.XMLName.Space != "urn:oasis:names:tc:SAML:2.0:metadata":
		return out, errors.New("it is not SAML metadata")
	}
	providers := slices.DeleteFunc(append(document.Entities, document), func(e entity) bool { return len(e.IDP) == 0 })
	if len(providers) != 1 || len(providers[0].IDP) != 1 {
		return out, errors.New("it must have one IDPSSODescriptor")
	}
	role := providers[0].IDP[0]
	out = IdentityProvider{
		EntityID: strings.TrimSpace(providers[0].EntityID), LoginURL: redirectAddress(role.SignOn),
		LogoutURL: redirectAddress(role.Logout),
	}
	for _, key := range role.Keys {
		if key.Use != "" && key.Use != "signing" {
			continue
		}
		for _, text := range key.Certificates {
			certificate, err := field.ParseCertificate("X509Certificate", text)
			if err != nil {
				return out, errors.New("an X509Certificate cannot be read")
			}
			inPEM := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Raw}))
			if !slices.Contains(out.Certificates, inPEM) {
				out.Certificates = append(out.Certificates, inPEM)
			}
		}
	}
	switch {
	case out.EntityID == "":
		return out, errors.New("it has no entityID")
	case out.LoginURL == "":
		return out, errors.New("it has no SingleSignOnService with the binding HTTP-Redirect")
	case len(out.Certificates) == 0 || len(out.Certificates) > maxMetadataCertificates:
		return out, fmt.Errorf("it has %d signing certificates; it must have 1 to %d", len(out.Certificates),
			maxMetadataCertificates)
	}
	return out, nil
}

// redirectAddress returns the first address that takes messages by HTTP-Redirect.
func redirectAddress(of []endpoint) string {
	for _, e := range of {
		if e.Binding == redirectBinding {
			return strings.TrimSpace(e.Location)
		}
	}
	return ""
}
