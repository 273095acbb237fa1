package rest_test

import (
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"encoding/xml"
	"strings"
	"testing"

	"github.com/doorward/doorward/pkg/id"
)

func TestSAMLServiceProvider(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	directory := b.mirror("S", samlProvider(``))
	metadata := b.Get(directory + "/provider").Href("serviceProviderMetadata")
	view := b.With("Accept", "application/json").Get(metadata).Want(200).Golden("saml_metadata")

	certificate := b.Get(view.Href("x509SigningCert")).Want(200).GoldenText("x509certificate")
	block, rest := pem.Decode(certificate.Body)
	if block == nil || block.Type != "CERTIFICATE" || len(rest) != 0 {
		t.Fatalf("not a certificate in PEM: %s", certificate.Body)
	}
	parsed, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	if err := parsed.CheckSignature(parsed.SignatureAlgorithm, parsed.RawTBSCertificate, parsed.Signature); err != nil {
		t.Errorf("the certificate is not signed by itself: %v", err)
	}
	if key, ok := parsed.PublicKey.(*rsa.PublicKey); !ok || key.N.BitLen() != 2048 ||
		parsed.SignatureAlgorithm != x509.SHA256WithRSA {
		t.Errorf("the certificate has a %T and is signed with %s", parsed.PublicKey, parsed.SignatureAlgorithm)
	}
	if now := b.clock.Now(); now.Before(parsed.NotBefore) || now.AddDate(9, 0, 0).After(parsed.NotAfter) {
		t.Errorf("the certificate is good from %s to %s", parsed.NotBefore, parsed.NotAfter)
	}

	var descriptor struct {
		XMLName  xml.Name `xml:"urn:oasis:names:tc:SAML:2.0:metadata EntityDescriptor"`
		EntityID string   `xml:"entityID,attr"`
		SP       []struct {
			Protocols string `xml:"protocolSupportEnumeration,attr"`
			Key       []struct {
				Use         string `xml:"use,attr"`
				Certificate string `xml:"http://www.w3.org/2000/09/xmldsig# KeyInfo>X509Data>X509Certificate"`
			} `xml:"KeyDescriptor"`
			NameIDFormat string `xml:"NameIDFormat"`
			Consumer     []struct {
				Binding  string `xml:"Binding,attr"`
				Location string `xml:"Location,attr"`
			} `xml:"AssertionConsumerService"`
		} `xml:"urn:oasis:names:tc:SAML:2.0:metadata SPSSODescriptor"`
	}
	document := b.Get(metadata).Want(200).GoldenText("saml_metadata")
	if err := xml.Unmarshal(document.Body, &descriptor); err != nil {
		t.Fatalf("the metadata is no XML, %v: %s", err, document.Body)
	}
	if descriptor.EntityID != view.Text("entityId") || !strings.HasPrefix(descriptor.EntityID, "urn:service:directory:") {
		t.Errorf("the entity is %s, in JSON %s", descriptor.EntityID, view.Text("entityId"))
	}
	if len(descriptor.SP) != 1 || len(descriptor.SP[0].Key) != 2 || len(descriptor.SP[0].Consumer) != 1 {
		t.Fatalf("the metadata is %s", document.Body)
	}
	sp := descriptor.SP[0]
	if sp.Protocols != "urn:oasis:names:tc:SAML:2.0:protocol" ||
		sp.NameIDFormat != "urn:oasis:names:tc:SAML:1.1:nameid-format:emailAddress" {
		t.Errorf("the metadata is %s", document.Body)
	}
	for i, use := range []string{"signing", "encryption"} {
		if sp.Key[i].Use != use || sp.Key[i].Certificate != base64.StdEncoding.EncodeToString(block.Bytes) {
			t.Errorf("the metadata has another key for %s: %s", use, document.Body)
		}
	}
	if sp.Consumer[0].Binding != "urn:oasis:names:tc:SAML:2.0:bindings:HTTP-POST" ||
		sp.Consumer[0].Location != view.Href("assertionConsumerServicePostEndpoint") {
		t.Errorf("the metadata is %s", document.Body)
	}
}

func TestMetadataIsXMLUnlessJSONIsAskedFor(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	metadata := b.Get(b.mirror("S", samlProvider(``)) + "/provider").Href("serviceProviderMetadata")
	for accept, want := range map[string]string{
		"":                                "application/samlmetadata+xml",
		"*/*":                             "application/samlmetadata+xml",
		"text/plain":                      "application/samlmetadata+xml",
		"application/xml":                 "application/xml",
		"text/html, application/xml":      "application/xml",
		"application/json":                "application/json;charset=UTF-8",
		"application/json;charset=UTF-8":  "application/json;charset=UTF-8",
		"Application/JSON; charset=utf-8": "application/json;charset=UTF-8",
		"application/xml ; charset=UTF-8;q=0.9, */*;q=0.1": "application/xml",
		"application/json;q=0.5, application/xml;q=0.4":    "application/json;charset=UTF-8",
	} {
		client := b.Client
		if accept != "" {
			client = b.With("Accept", accept)
		}
		answer := client.Get(metadata).Want(200)
		if kind := answer.Header.Get("Content-Type"); kind != want {
			t.Errorf("Accept: %s returns %s, want %s", accept, kind, want)
		}
		if answer.Header.Get("Vary") != "Accept" {
			t.Errorf("Accept: %s: no Vary", accept)
		}
	}
	for _, collection := range []string{"samlServiceProviderMetadatas", "x509certificates"} {
		b.Get("/v1/"+collection+"/"+id.New(b.clock.Now()).String()).WantError(404, 404)
		b.Get("/v1/"+collection+"/nothing").WantError(404, 404)
	}
}

func TestTheAliasNamesTheEntity(t *testing.T) {
	t.Parallel()
	b := newBenchOf(t, "acme")
	metadata := b.Get(b.mirror("S", samlProvider(``)) + "/provider").Href("serviceProviderMetadata")
	if entity := b.With("Accept", "application/json").Get(metadata).
		Text("entityId"); !strings.HasPrefix(entity, "urn:acme:directory:") {
		t.Errorf("the entity is %s", entity)
	}
}

func TestEverySAMLDirectoryHasItsOwnKey(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	first, second := b.mirror("1", samlProvider(``)), b.mirror("2", samlProvider(``))
	certificates := map[string]bool{}
	for _, directory := range []string{first, second} {
		metadata := b.Get(directory + "/provider").Href("serviceProviderMetadata")
		certificates[string(b.Get(b.With("Accept", "application/json").Get(metadata).Href("x509SigningCert")).Body)] = true
	}
	if len(certificates) != 2 {
		t.Errorf("two directories have %d certificates", len(certificates))
	}
}
