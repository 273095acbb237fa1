package saml

import (
	"cmp"
	"strings"
	"time"

	"github.com/beevik/etree"
	"github.com/crewjam/saml"
	dsig "github.com/russellhaering/goxmldsig"

	"github.com/doorward/doorward/pkg/secure"
)

// The algorithms that sign messages.
const (
	SHA256 = "RSA-SHA256"
	SHA1   = "RSA-SHA1"
)

var signatureMethods = map[string]string{SHA256: dsig.RSASHA256SignatureMethod, SHA1: dsig.RSASHA1SignatureMethod}

const (
	clockSkew    = time.Minute     // by how much the clock of a service provider may be late
	responseLife = 5 * time.Minute // how long an issued response is valid
)

// bearer is the method of subject confirmation by which the browser that sends an assertion is its
// subject (SAML 2.0 profiles, section 3.3).
const bearer = "urn:oasis:names:tc:SAML:2.0:cm:bearer"

// Response is a response that the identity provider issues: it informs a service provider that a user
// has logged in (SAML 2.0 profiles, section 4.1.4.2). verifyresponse.go verifies received responses.
type Response struct {
	Issuer       string // entity id of the identity provider
	Audience     string // entity id of the service provider
	ConsumerURL  string // where the response goes
	InResponseTo string // id of the request
	NameID       string
	NameIDFormat string // one of the URNs of metadata.go
	Attributes   []Attribute
	Now          time.Time

	AuthenticatedAt time.Time // when the user proved who he is, which may be in an earlier login
	SessionIndex    string    // names the session of the user here; empty: one of its own
}

// Attribute is an attribute of the user in an assertion.
type Attribute struct {
	Name       string
	NameFormat string // empty: unspecified
	Values     []string

	FriendlyName string // for people; empty: none
}

// Sign returns the response in XML. Both the assertion and the response are signed, because service
// providers differ in which signature they verify.
func (r Response) Sign(pair KeyPair, algorithm string) ([]byte, error) {
	signer, err := newSigner(pair, algorithm)
	if err != nil {
		return nil, err
	}
	assertion := r.assertion()
	if assertion.Signature, err = signer.sign(assertion.Element()); err != nil {
		return nil, err
	}
	return signer.envelope(r.Issuer, r.ConsumerURL, r.InResponseTo, r.Now,
		saml.Status{StatusCode: saml.StatusCode{Value: saml.StatusSuccess}}, assertion.Element())
}

// The reasons of a Refusal: status codes (SAML 2.0 core, section 3.2.2.2).
const (
	NoPassive     = saml.StatusNoPassive
	AuthnFailed   = saml.StatusAuthnFailed
	RequestDenied = saml.StatusRequestDenied
)

// Refusal is a response that informs a service provider that a user has not logged in.
type Refusal struct {
	Issuer       string // entity id of the identity provider
	ConsumerURL  string // where the response goes
	InResponseTo string // id of the request
	Reason       string // one of the URNs above
	Message      string
	Now          time.Time
}

// Sign returns the signed response in XML.
func (r Refusal) Sign(pair KeyPair, algorithm string) ([]byte, error) {
	signer, err := newSigner(pair, algorithm)
	if err != nil {
		return nil, err
	}
	status := saml.Status{StatusCode: saml.StatusCode{Value: saml.StatusResponder,
		StatusCode: &saml.StatusCode{Value: r.Reason}}}
	if r.Message != "" {
		status.StatusMessage = &saml.StatusMessage{Value: xmlText(r.Message)}
	}
	return signer.envelope(r.Issuer, r.ConsumerURL, r.InResponseTo, r.Now, status, nil)
}

func (r Response) assertion() saml.Assertion {
	now, until, authenticatedAt := r.Now.UTC(), r.Now.UTC().Add(responseLife), r.AuthenticatedAt
	if authenticatedAt.IsZero() {
		authenticatedAt = now
	}
	assertion := saml.Assertion{
		ID: newMessageID(), IssueInstant: now, Version: "2.0", Issuer: saml.Issuer{Value: r.Issuer},
		Subject: &saml.Subject{
			NameID: &saml.NameID{Format: r.NameIDFormat, Value: xmlText(r.NameID)},
			SubjectConfirmations: []saml.SubjectConfirmation{{
				Method: bearer,
				SubjectConfirmationData: &saml.SubjectConfirmationData{NotOnOrAfter: until, Recipient: r.ConsumerURL,
					InResponseTo: r.InResponseTo},
			}},
		},
		Conditions: &saml.Conditions{
			NotBefore: now.Add(-clockSkew), NotOnOrAfter: until,
			AudienceRestrictions: []saml.AudienceRestriction{{Audience: saml.Audience{Value: r.Audience}}},
		},
		AuthnStatements: []saml.AuthnStatement{{
			AuthnInstant: authenticatedAt.UTC(), SessionIndex: cmp.Or(xmlText(r.SessionIndex), newMessageID()),
			AuthnContext: saml.AuthnContext{AuthnContextClassRef: &saml.AuthnContextClassRef{
				Value: "urn:oasis:names:tc:SAML:2.0:ac:classes:unspecified",
			}},
		}},
	}
	if r.NameIDFormat == PersistentNameID { // the name is unique for these two parties only
		assertion.Subject.NameID.NameQualifier, assertion.Subject.NameID.SPNameQualifier = r.Issuer, r.Audience
	}
	var statement saml.AttributeStatement
	for _, a := range r.Attributes {
		attribute := saml.Attribute{Name: a.Name, NameFormat: a.NameFormat}
		for _, value := range a.Values {
			attribute.Values = append(attribute.Values, saml.AttributeValue{Type: "xs:string", Value: xmlText(value)})
		}
		statement.Attributes = append(statement.Attributes, attribute)
	}
	if len(statement.Attributes) > 0 {
		assertion.AttributeStatements = []saml.AttributeStatement{statement}
	}
	return assertion
}

func newMessageID() string { return "_" + secure.Token(32).Reveal() }

// xmlText returns the text without the characters that XML 1.0 does not allow.
func xmlText(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\t' && r != '\n' && r != '\r' || r == 0xFFFE || r == 0xFFFF {
			return -1
		}
		return r
	}, text)
}

// signer makes enveloped signatures (XML Signature, section 8.1).
type signer struct{ context *dsig.SigningContext }

func newSigner(pair KeyPair, algorithm string) (signer, error) {
	context, err := dsig.NewSigningContext(pair.Key, [][]byte{der(pair.Certificate)})
	if err != nil {
		return signer{}, err
	}
	context.Canonicalizer = dsig.MakeC14N10ExclusiveCanonicalizerWithPrefixList("")
	return signer{context}, context.SetSignatureMethod(signatureMethods[algorithm])
}

// envelope returns a signed response in XML, with an assertion where there is one.
func (s signer) envelope(
	issuer, to, inResponseTo string, now time.Time, status saml.Status, assertion *etree.Element,
) ([]byte, error) {
	response := saml.Response{
		ID: newMessageID(), InResponseTo: inResponseTo, Version: "2.0", IssueInstant: now.UTC(), Destination: to,
		Issuer: &saml.Issuer{Value: issuer}, Status: status,
	}
	whole := func() *etree.Element {
		element := response.Element()
		if assertion != nil {
			element.AddChild(assertion)
		}
		return element
	}
	var err error
	if response.Signature, err = s.sign(whole()); err != nil {
		return nil, err
	}
	return marshalCanonical(whole())
}

// marshalCanonical returns an element as XML in canonical form, so that its signature stays valid.
func marshalCanonical(element *etree.Element) ([]byte, error) {
	document := etree.NewDocument()
	document.WriteSettings = etree.WriteSettings{CanonicalText: true, CanonicalAttrVal: true, CanonicalEndTags: true}
	document.SetRoot(element)
	return document.WriteToBytes()
}

func (s signer) sign(element *etree.Element) (*etree.Element, error) {
	signed, err := s.context.SignEnveloped(element)
	if err != nil {
		return nil, err
	}
	children := signed.ChildElements()
	return children[len(children)-1], nil
}
