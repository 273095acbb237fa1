package saml

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/beevik/etree"
	"github.com/crewjam/saml"

	"github.com/doorward/doorward/pkg/apierr"
)

// MaxResponse is the largest response in bytes, in Base64.
const MaxResponse = 512 << 10

// ServiceProvider verifies responses as the service provider (SAML 2.0 profiles, section 4.1.4.3). Its
// fields are the expected values of a response.
type ServiceProvider struct {
	EntityID     string
	ConsumerURL  string
	Issuer       string   // entity id of the identity provider; empty: any issuer with a valid signature
	RequestID    string   // id of the request; empty: the login was started by the identity provider
	Certificates []string // of the identity provider, in PEM
	AllowSHA1    bool
	KeyPair      func() (KeyPair, error) // decrypts assertions
	ClockSkew    time.Duration           // by how much the clocks of the parties may differ
	Now          time.Time
}

// Login is the content of a verified response.
type Login struct {
	ResponseID   string
	AssertionID  string // for replay protection: services/directory/provider/samllogin.go
	Issuer       string
	NameID       string
	NameIDFormat string
	SessionIndex string
	Attributes   []Attribute
	// ExpiresAt is when the assertion expires, clock skew included.
	ExpiresAt time.Time
}

// VerifyResponse verifies a SAMLResponse that came by HTTP-POST, and returns its content: it validates
// the signature, the issuer, the audience, the recipient and the times. It returns
// apierr.SAMLMalformed, SAMLSignature, or SAMLFailed if the identity provider reports a failure.
// The caller prevents replay (services/directory/provider/samllogin.go).
func (p ServiceProvider) VerifyResponse(encoded string) (Login, error) {
	if len(encoded) > MaxResponse {
		return Login{}, malformedResponse("it is too large")
	}
	text, err := decodeBase64(encoded)
	if err != nil {
		return Login{}, malformedResponse("it is not Base64")
	}
	response, err := parseDocument(text)
	if err != nil {
		return Login{}, malformedResponse(err.Error())
	}
	if err := checkShape(response); err != nil {
		return Login{}, malformedResponse(err.Error())
	}
	whole, assertion, err := p.verifySignatures(response)
	if err != nil {
		return Login{}, err
	}
	if err := p.checkResponse(whole, hasSignature(response)); err != nil {
		return Login{}, err
	}
	if assertion == nil {
		return Login{}, malformedResponse("it has no assertion")
	}
	login, err := p.readAssertion(assertion)
	login.ResponseID = whole.SelectAttrValue("ID", "")
	if issuer := textOf(childOf(whole, assertionNamespace, "Issuer")); err == nil && issuer != "" &&
		issuer != login.Issuer {
		err = malformedResponse("the Issuer of the response is not that of the assertion")
	}
	return login, err
}

func malformedResponse(reason string) error {
	return apierr.SAMLMalformed.Because("the SAML response cannot be used: %s", reason)
}

// checkShape prevents XML signature wrapping (XSW): it refuses a document that is not one response
// with at most one assertion, and with signatures only where they are verified. Every known
// wrapping attack needs a second element of one of these kinds.
func checkShape(response *etree.Element) error {
	if !hasName(response, protocol, "Response") {
		return errors.New("it is not a Response")
	}
	if response.SelectAttrValue("Version", "") != "2.0" ||
		CheckMessageID("ID", response.SelectAttrValue("ID", "")) != nil {
		return errors.New("the response must have the Version 2.0 and an ID")
	}
	assertions := 0
	return eachElement(response, func(e *etree.Element) error {
		switch e.Tag {
		case "Response":
			if e != response {
				return errors.New("there is a response in the response")
			}
		case "Assertion", "EncryptedAssertion":
			if assertions++; assertions > 1 || e.Parent() != response || e.NamespaceURI() != assertionNamespace {
				return errors.New("there must be one assertion, in the response itself")
			}
		case "Signature":
			if parent := e.Parent(); parent != response && !hasName(parent, assertionNamespace, "Assertion") ||
				e.NamespaceURI() != signatureNamespace {
				return errors.New("a signature must stand in the response or in its assertion")
			}
			if len(childrenOf(e.Parent(), signatureNamespace, "Signature")) > 1 {
				return errors.New("an element has two signatures")
			}
		}
		return nil
	})
}

func eachElement(element *etree.Element, fn func(*etree.Element) error) error {
	if err := fn(element); err != nil {
		return err
	}
	for _, child := range element.ChildElements() {
		if err := eachElement(child, fn); err != nil {
			return err
		}
	}
	return nil
}

func hasSignature(element *etree.Element) bool {
	return len(childrenOf(element, signatureNamespace, "Signature")) > 0
}

// verifySignatures verifies all signatures. It returns the response, and its assertion as a signature
// covers it, or nil if there is no assertion. A response without an assertion, which reports a
// failure, need not be signed.
func (p ServiceProvider) verifySignatures(response *etree.Element) (whole, assertion *etree.Element, err error) {
	v := verifier{p.Certificates, p.AllowSHA1}
	whole, covered := response, hasSignature(response)
	if covered {
		if whole, err = v.verify(response); err != nil {
			return nil, nil, signatureError(err)
		}
	}
	if encrypted := childOf(whole, assertionNamespace, "EncryptedAssertion"); encrypted != nil {
		assertion, err = p.decryptAssertion(v, whole, encrypted, covered)
		return whole, assertion, err
	}
	assertion = childOf(whole, assertionNamespace, "Assertion")
	if assertion == nil {
		return whole, nil, nil
	}
	if hasSignature(assertion) {
		if assertion, err = v.verify(assertion); err != nil {
			return nil, nil, signatureError(err)
		}
		covered = true
	}
	if !covered {
		return nil, nil, apierr.SAMLSignature.Because("neither the SAML response nor its assertion is signed")
	}
	return whole, assertion, nil
}

func signatureError(err error) error {
	return apierr.SAMLSignature.Because("the SAML response is not signed as the directory expects: %s", err.Error())
}

// decryptAssertion decrypts an encrypted assertion and verifies its signature. All failures return the
// same error: different errors would help an attacker to decrypt assertions of others (padding
// oracle).
func (p ServiceProvider) decryptAssertion(v verifier, whole, encrypted *etree.Element,
	covered bool) (*etree.Element, error) {
	refused := apierr.SAMLSignature.Because(
		"the encrypted assertion cannot be decrypted, or is not signed as the directory expects")
	pair, err := p.KeyPair()
	if err != nil {
		return nil, err
	}
	text, err := decrypt(pair.Key, encrypted)
	if err != nil {
		return nil, refused
	}
	assertion, err := parseDocument(text)
	if err != nil || !hasName(assertion, assertionNamespace, "Assertion") ||
		assertion.SelectAttrValue("ID", "") == whole.SelectAttrValue("ID", "") {
		return nil, refused
	}
	if err := eachElement(assertion, func(e *etree.Element) error {
		if isOther := e != assertion &&
			(e.Tag == "Response" || e.Tag == "Assertion" || e.Tag == "EncryptedAssertion"); isOther ||
			e.Tag == "Signature" && e.Parent() != assertion {
			return refused
		}
		return nil
	}); err != nil {
		return nil, refused
	}
	if !hasSignature(assertion) {
		if !covered {
			return nil, refused
		}
		return assertion, nil
	}
	if assertion, err = v.verify(assertion); err != nil {
		return nil, refused
	}
	return assertion, nil
}

// checkResponse validates the attributes and the status of the response. Only a response that is not
// signed itself may leave out its Destination (SAML 2.0 bindings, section 3.5.5.2).
func (p ServiceProvider) checkResponse(response *etree.Element, isSigned bool) error {
	if to := response.SelectAttrValue("Destination", ""); to != p.ConsumerURL && (to != "" || isSigned) {
		return malformedResponse(fmt.Sprintf("its Destination is %q", to))
	}
	if to := response.SelectAttrValue("InResponseTo", ""); to != p.RequestID {
		return malformedResponse("its InResponseTo is not the request that was sent")
	}
	issued, err := parseTime(response, "IssueInstant")
	if err != nil || issued == nil || issued.After(p.Now.Add(p.ClockSkew)) {
		return malformedResponse("its IssueInstant is missing or in the future")
	}
	if issuer := textOf(childOf(response, assertionNamespace, "Issuer")); p.Issuer != "" && issuer != "" &&
		issuer != p.Issuer {
		return malformedResponse(fmt.Sprintf("its Issuer is %q", issuer))
	}
	reasons, err := statusReasons(response)
	switch {
	case err != nil:
		return malformedResponse("it " + err.Error())
	case len(reasons) > 0:
		return apierr.SAMLFailed.Because("the identity provider refused the login: %.500s", strings.Join(reasons, ", "))
	}
	return nil
}

// readAssertion validates a signed assertion and returns its content.
func (p ServiceProvider) readAssertion(assertion *etree.Element) (login Login, err error) {
	login.AssertionID = assertion.SelectAttrValue("ID", "")
	login.Issuer = textOf(childOf(assertion, assertionNamespace, "Issuer"))
	issued, err := parseTime(assertion, "IssueInstant")
	switch {
	case CheckMessageID("ID", login.AssertionID) != nil || assertion.SelectAttrValue("Version", "") != "2.0":
		return login, malformedResponse("the assertion must have the Version 2.0 and an ID")
	case login.Issuer == "" || p.Issuer != "" && login.Issuer != p.Issuer:
		return login, malformedResponse(fmt.Sprintf("the Issuer of the assertion is %q", login.Issuer))
	case err != nil || issued == nil || issued.After(p.Now.Add(p.ClockSkew)):
		return login, malformedResponse("the IssueInstant of the assertion is missing or in the future")
	}
	if err := p.checkConditions(assertion); err != nil {
		return login, err
	}
	subject := childOf(assertion, assertionNamespace, "Subject")
	if subject == nil {
		return login, malformedResponse("the assertion has no Subject")
	}
	if login.ExpiresAt, err = p.checkSubjectConfirmation(subject); err != nil {
		return login, err
	}
	if name := childOf(subject, assertionNamespace, "NameID"); name != nil {
		if len(name.ChildElements()) > 0 {
			return login, malformedResponse("the NameID has elements")
		}
		login.NameID, login.NameIDFormat = textOf(name), name.SelectAttrValue("Format", "")
	}
	if login.SessionIndex, err = p.checkAuthnStatements(assertion); err != nil {
		return login, err
	}
	login.Attributes = readAttributes(assertion)
	return login, nil
}

// checkConditions validates the audience and the times of an assertion. An unknown condition is
// refused (SAML 2.0 core, section 2.5.1.1).
func (p ServiceProvider) checkConditions(assertion *etree.Element) error {
	conditions := childOf(assertion, assertionNamespace, "Conditions")
	if conditions == nil {
		return malformedResponse("the assertion has no Conditions")
	}
	from, err := parseTime(conditions, "NotBefore")
	until, err2 := parseTime(conditions, "NotOnOrAfter")
	switch {
	case err != nil || err2 != nil:
		return malformedResponse("a time of the Conditions cannot be read")
	case from != nil && p.Now.Add(p.ClockSkew).Before(*from):
		return malformedResponse("the assertion is not valid yet")
	case until != nil && !p.Now.Add(-p.ClockSkew).Before(*until):
		return malformedResponse("the assertion has expired")
	}
	restricted := false
	for _, condition := range conditions.ChildElements() {
		switch {
		case hasName(condition, assertionNamespace, "AudienceRestriction"):
			restricted = true
			audiences := childrenOf(condition, assertionNamespace, "Audience")
			if !slices.ContainsFunc(audiences, func(e *etree.Element) bool { return textOf(e) == p.EntityID }) {
				return malformedResponse(fmt.Sprintf("the assertion is for another audience than %q", p.EntityID))
			}
		case hasName(condition, assertionNamespace, "OneTimeUse"), hasName(condition, assertionNamespace,
			"ProxyRestriction"):
		default:
			return malformedResponse("the assertion has a condition that is not understood")
		}
	}
	if !restricted {
		return malformedResponse("the assertion has no AudienceRestriction")
	}
	return nil
}

// checkSubjectConfirmation validates the SubjectConfirmation of the method bearer: recipient,
// InResponseTo and times. It returns when the confirmation expires, clock skew included.
func (p ServiceProvider) checkSubjectConfirmation(subject *etree.Element) (time.Time, error) {
	reason := "the Subject has no SubjectConfirmation of the method bearer"
	for _, confirmation := range childrenOf(subject, assertionNamespace, "SubjectConfirmation") {
		if confirmation.SelectAttrValue("Method", "") != bearer {
			continue
		}
		data := childOf(confirmation, assertionNamespace, "SubjectConfirmationData")
		if data == nil {
			reason = "the SubjectConfirmation has no data"
			continue
		}
		until, err := parseTime(data, "NotOnOrAfter")
		from, err2 := parseTime(data, "NotBefore")
		switch {
		case err != nil || err2 != nil || until == nil:
			reason = "the SubjectConfirmationData has no NotOnOrAfter"
		case !p.Now.Add(-p.ClockSkew).Before(*until):
			reason = "the SubjectConfirmationData has expired"
		case from != nil && p.Now.Add(p.ClockSkew).Before(*from):
			reason = "the SubjectConfirmationData is not valid yet"
		case data.SelectAttrValue("Recipient", "") != p.ConsumerURL:
			reason = fmt.Sprintf("the Recipient of the SubjectConfirmationData must be %q", p.ConsumerURL)
		case data.SelectAttrValue("InResponseTo", "") != p.RequestID:
			reason = "the InResponseTo of the SubjectConfirmationData is not the request that was sent"
		default:
			return until.Add(p.ClockSkew), nil
		}
	}
	return time.Time{}, malformedResponse(reason)
}

// checkAuthnStatements refuses an assertion whose session at the identity provider has ended, and
// returns the session index. Some providers leave out the AuthnStatement, although the profile
// requires it; that is accepted.
func (p ServiceProvider) checkAuthnStatements(assertion *etree.Element) (index string, err error) {
	for _, statement := range childrenOf(assertion, assertionNamespace, "AuthnStatement") {
		until, err := parseTime(statement, "SessionNotOnOrAfter")
		if err != nil || until != nil && !p.Now.Add(-p.ClockSkew).Before(*until) {
			return "", malformedResponse("the session at the identity provider has ended")
		}
		index = cmp.Or(index, statement.SelectAttrValue("SessionIndex", ""))
	}
	return index, nil
}

func readAttributes(assertion *etree.Element) (attributes []Attribute) {
	for _, statement := range childrenOf(assertion, assertionNamespace, "AttributeStatement") {
		for _, element := range childrenOf(statement, assertionNamespace, "Attribute") {
			attribute := Attribute{Name: element.SelectAttrValue("Name", ""),
				NameFormat: element.SelectAttrValue("NameFormat", "")}
			attribute.FriendlyName = element.SelectAttrValue("FriendlyName", "")
			for _, value := range childrenOf(element, assertionNamespace, "AttributeValue") {
				attribute.Values = append(attribute.Values, textOf(value))
			}
			attributes = append(attributes, attribute)
		}
	}
	return attributes
}

// parseTime parses a time attribute; it returns nil if there is none.
func parseTime(element *etree.Element, name string) (*time.Time, error) {
	attribute := element.SelectAttr(name)
	if attribute == nil {
		return nil, nil
	}
	text := strings.TrimSpace(attribute.Value)
	if text == "" {
		return nil, errors.New("the time is empty")
	}
	var at saml.RelaxedTime
	err := at.UnmarshalText([]byte(text))
	read := time.Time(at)
	return &read, err
}
