package saml

import (
	"crypto/x509"
	"errors"
	"slices"

	"github.com/beevik/etree"
	dsig "github.com/russellhaering/goxmldsig"
	"github.com/russellhaering/goxmldsig/etreeutils"

	"github.com/doorward/doorward/pkg/field"
)

// The allowed algorithms of XML signatures. SHA-1 is allowed only for parties that are configured for
// it.
var (
	signatureAlgorithms = []string{
		dsig.RSASHA256SignatureMethod, dsig.RSASHA384SignatureMethod, dsig.RSASHA512SignatureMethod,
		dsig.ECDSASHA256SignatureMethod, dsig.ECDSASHA384SignatureMethod, dsig.ECDSASHA512SignatureMethod,
	}
	hashAlgorithms = []string{
		"http://www.w3.org/2001/04/xmlenc#sha256", "http://www.w3.org/2001/04/xmldsig-more#sha384",
		"http://www.w3.org/2001/04/xmlenc#sha512",
	}
	canonicalizations = []string{
		string(dsig.CanonicalXML10ExclusiveAlgorithmId), string(dsig.CanonicalXML10RecAlgorithmId),
		string(dsig.CanonicalXML11AlgorithmId),
	}
)

const (
	sha1Signature = dsig.RSASHA1SignatureMethod
	sha1Hash      = "http://www.w3.org/2000/09/xmldsig#sha1"
)

// verifier verifies enveloped XML signatures (XML Signature, section 8.1; SAML 2.0 core, section 5.4).
type verifier struct {
	certificates []string // in PEM; a signature by any of them is valid
	allowSHA1    bool
}

// verify verifies the signature of an element, which must be its child, and returns the element as the
// signature covers it: without anything that is not signed.
func (v verifier) verify(element *etree.Element) (*etree.Element, error) {
	signature := childOf(element, signatureNamespace, "Signature")
	if signature == nil {
		return nil, errors.New("there is no signature, or more than one")
	}
	if err := v.checkSignature(element, signature); err != nil {
		return nil, err
	}
	parent, err := etreeutils.NSBuildParentContext(element)
	if err != nil {
		return nil, err
	}
	namespaces, err := parent.SubContext(element)
	if err != nil {
		return nil, err
	}
	detached, err := etreeutils.NSDetatch(namespaces, element)
	if err != nil {
		return nil, err
	}
	// The certificate in the message (KeyInfo) is ignored: only those of the settings are trusted.
	own := childOf(detached, signatureNamespace, "Signature")
	for _, info := range childrenOf(own, signatureNamespace, "KeyInfo") {
		own.RemoveChild(info)
	}
	err = errors.New("the settings have no certificate")
	for _, text := range v.certificates {
		certificate, failed := field.ParseCertificate("certificate", text)
		if failed != nil {
			err = errors.New("a certificate of the settings cannot be read")
			continue
		}
		trusted := &dsig.MemoryX509CertificateStore{Roots: []*x509.Certificate{certificate}}
		context := dsig.NewDefaultValidationContext(trusted)
		context.Clock = dsig.NewFakeClockAt(certificate.NotBefore) // its dates do not count (certificate.go)
		signed, failed := context.Validate(detached)
		if failed == nil {
			return signed, nil
		}
		err = errors.New("the signature does not match a certificate of the settings")
	}
	return nil, err
}

// checkSignature validates the form and the algorithms of a signature before it is verified.
func (v verifier) checkSignature(element, signature *etree.Element) error {
	info := childOf(signature, signatureNamespace, "SignedInfo")
	if info == nil || len(childrenOf(signature, signatureNamespace, "Object")) > 0 {
		return errors.New("the signature must have one SignedInfo and no Object")
	}
	reference := childOf(info, signatureNamespace, "Reference")
	if reference == nil || element.SelectAttrValue("ID", "") == "" ||
		reference.SelectAttrValue("URI", "") != "#"+element.SelectAttrValue("ID", "") {
		return errors.New("the signature must have one Reference, to the element that it stands in")
	}
	methods, hashes := signatureAlgorithms, hashAlgorithms
	if v.allowSHA1 {
		methods, hashes = append(slices.Clip(methods), sha1Signature), append(slices.Clip(hashes), sha1Hash)
	}
	for _, algorithm := range []struct {
		of      *etree.Element
		name    string
		allowed []string
	}{
		{info, "CanonicalizationMethod", canonicalizations}, {info, "SignatureMethod", methods},
		{reference, "DigestMethod", hashes},
	} {
		chosen := childOf(algorithm.of, signatureNamespace, algorithm.name)
		if chosen == nil || !slices.Contains(algorithm.allowed, chosen.SelectAttrValue("Algorithm", "")) {
			return errors.New("the signature has a " + algorithm.name + " that is not allowed")
		}
	}
	return checkTransforms(reference)
}

func checkTransforms(reference *etree.Element) error {
	transforms := childOf(reference, signatureNamespace, "Transforms")
	if transforms == nil {
		return errors.New("the signature must have Transforms")
	}
	enveloped := false
	for _, transform := range transforms.ChildElements() {
		algorithm := transform.SelectAttrValue("Algorithm", "")
		enveloped = enveloped || algorithm == string(dsig.EnvelopedSignatureAltorithmId)
		if algorithm != string(dsig.EnvelopedSignatureAltorithmId) && !slices.Contains(canonicalizations, algorithm) {
			return errors.New("the signature has a Transform that is not allowed")
		}
	}
	if !enveloped {
		return errors.New("the signature must be enveloped")
	}
	return nil
}
