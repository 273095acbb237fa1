package saml

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/beevik/etree"
	dsig "github.com/russellhaering/goxmldsig"

	"github.com/doorward/doorward/pkg/apierr"
)

const (
	ownEntity   = "urn:sp"
	ownConsumer = "https://sp.test/post"
	otherEntity = "urn:idp"
)

// party is an identity provider that makes responses of any form.
type party struct {
	*testing.T
	pair    KeyPair
	request string
}

func newParty(t *testing.T) party {
	t.Helper()
	pair, _ := newPair(t)
	return party{t, pair, "_request"}
}

// expects is the service provider to which the party answers.
func (p party) expects() ServiceProvider {
	return ServiceProvider{
		EntityID: ownEntity, ConsumerURL: ownConsumer, Issuer: otherEntity, RequestID: p.request, Certificates: []string{p.pair.Certificate}, Now: now,
		ClockSkew: time.Minute,
		KeyPair:   func() (KeyPair, error) { return KeyPair{}, errors.New("there is none") },
	}
}

// xml is a response as Response.Sign makes it.
func (p party) xml(algorithm string) string {
	p.Helper()
	text, err := Response{
		Issuer: otherEntity, Audience: ownEntity, ConsumerURL: ownConsumer, InResponseTo: p.request, NameID: "jo@example.test",
		NameIDFormat: EmailNameID, Attributes: []Attribute{{Name: "mail", Values: []string{"jo@example.test", "j@example.test"}}}, Now: now,
	}.Sign(p.pair, algorithm)
	if err != nil {
		p.Fatal(err)
	}
	return string(text)
}

// parts are a response without signatures, and its assertion.
func (p party) parts() (response, assertion *etree.Element) {
	p.Helper()
	response = root(p.T, p.xml(SHA256))
	assertion = childOf(response, assertionNamespace, "Assertion")
	for _, element := range []*etree.Element{response, assertion} {
		element.RemoveChild(childOf(element, signatureNamespace, "Signature"))
	}
	return response, assertion
}

func root(t *testing.T, text string) *etree.Element {
	t.Helper()
	document := etree.NewDocument()
	if err := document.ReadFromString(text); err != nil {
		t.Fatal(err)
	}
	return document.Root()
}

// sign signs an element in its place.
func (p party) sign(element *etree.Element) *etree.Element {
	p.Helper()
	s, err := newSigner(p.pair, SHA256)
	if err != nil {
		p.Fatal(err)
	}
	signature, err := s.sign(element)
	if err != nil {
		p.Fatal(err)
	}
	element.InsertChildAt(1, signature)
	return signature
}

func text(t *testing.T, element *etree.Element) string {
	t.Helper()
	out, err := marshalCanonical(element)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func encode(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }

// signedAssertion is a response whose assertion alone is signed, after a change.
func (p party) signedAssertion(change func(response, assertion *etree.Element)) string {
	p.Helper()
	response, assertion := p.parts()
	if change != nil {
		change(response, assertion)
	}
	p.sign(assertion)
	return text(p.T, response)
}

func find(element *etree.Element, path ...string) *etree.Element {
	for _, name := range path {
		var next *etree.Element
		for _, child := range element.ChildElements() {
			if child.Tag == name {
				next = child
				break
			}
		}
		element = next
	}
	return element
}

func TestResponsesThatAreAccepted(t *testing.T) {
	p := newParty(t)
	onlyResponse := func() string {
		response, _ := p.parts()
		p.sign(response)
		return text(t, response)
	}
	for what, response := range map[string]string{
		"both are signed": p.xml(SHA256), "the assertion is signed": p.signedAssertion(nil), "the response is signed": onlyResponse(),
		"without a Destination": p.signedAssertion(func(response, _ *etree.Element) { response.RemoveAttr("Destination") }),
		"without the certificate": func() string {
			response := root(t, p.signedAssertion(nil))
			signature := find(response, "Assertion", "Signature")
			signature.RemoveChild(find(signature, "KeyInfo"))
			return text(t, response)
		}(),
	} {
		t.Run(what, func(t *testing.T) {
			login, err := p.expects().VerifyResponse(encode(response))
			if err != nil {
				t.Fatal(err)
			}
			if login.NameID != "jo@example.test" || login.NameIDFormat != EmailNameID || login.Issuer != otherEntity || login.AssertionID == "" ||
				login.ResponseID == "" || login.SessionIndex == "" || len(login.Attributes) != 1 || len(login.Attributes[0].Values) != 2 {
				t.Errorf("the login is %+v", login)
			}
			if login.ExpiresAt.Before(now.Add(responseLife)) {
				t.Errorf("the response could be used again after %s", login.ExpiresAt)
			}
		})
	}
	t.Run("without an AuthnStatement, which names no session", func(t *testing.T) {
		login, err := p.expects().VerifyResponse(encode(p.signedAssertion(func(_, assertion *etree.Element) {
			assertion.RemoveChild(find(assertion, "AuthnStatement"))
		})))
		if err != nil || login.NameID != "jo@example.test" || login.SessionIndex != "" {
			t.Errorf("the login is %+v, %v", login, err)
		}
	})
	t.Run("but not without a Destination that the response itself signs", func(t *testing.T) {
		for _, change := range []func(*etree.Element){
			func(r *etree.Element) { r.RemoveAttr("Destination") }, func(r *etree.Element) { r.CreateAttr("Destination", "") },
		} {
			response, _ := p.parts()
			change(response)
			p.sign(response)
			if _, err := p.expects().VerifyResponse(encode(text(t, response))); !errors.Is(err, apierr.SAMLMalformed) {
				t.Errorf("the response without a Destination returned %v", err)
			}
		}
	})
	t.Run("by the next certificate", func(t *testing.T) {
		other, _ := newPair(t)
		expected := p.expects()
		expected.Certificates = []string{other.Certificate, p.pair.Certificate}
		if _, err := expected.VerifyResponse(encode(p.xml(SHA256))); err != nil {
			t.Error(err)
		}
	})
	t.Run("with SHA-1 where it is configured", func(t *testing.T) {
		expected := p.expects()
		expected.AllowSHA1 = true
		if _, err := expected.VerifyResponse(encode(p.xml(SHA1))); err != nil {
			t.Error(err)
		}
	})
	t.Run("within the skew of the clocks", func(t *testing.T) {
		expected := p.expects()
		for _, at := range []time.Time{now.Add(-clockSkew), now.Add(responseLife + clockSkew - time.Second)} {
			expected.Now = at
			if _, err := expected.VerifyResponse(encode(p.xml(SHA256))); err != nil {
				t.Errorf("at %s: %v", at, err)
			}
		}
	})
}

// Nobody is logged in by a response that lacks what the profile asks for, or has it
// for another.
func TestResponsesThatSayTheWrongThing(t *testing.T) {
	p := newParty(t)
	set := func(name, value string, path ...string) func(_, _ *etree.Element) {
		return func(_, assertion *etree.Element) { find(assertion, path...).CreateAttr(name, value) }
	}
	drop := func(name string, path ...string) func(_, _ *etree.Element) {
		return func(_, assertion *etree.Element) { find(assertion, path...).RemoveAttr(name) }
	}
	remove := func(path ...string) func(_, _ *etree.Element) {
		return func(_, assertion *etree.Element) {
			element := find(assertion, path...)
			element.Parent().RemoveChild(element)
		}
	}
	of := func(fn func(response *etree.Element)) func(_, _ *etree.Element) {
		return func(response, _ *etree.Element) { fn(response) }
	}
	data := []string{"Subject", "SubjectConfirmation", "SubjectConfirmationData"}
	past, future := "2026-11-20T20:00:00Z", "2026-11-20T21:00:00Z"
	for what, change := range map[string]func(response, assertion *etree.Element){
		"no audience": remove("Conditions", "AudienceRestriction"),
		"another audience": func(_, a *etree.Element) {
			find(a, "Conditions", "AudienceRestriction", "Audience").SetText("urn:other")
		},
		"an audience of the same beginning": func(_, a *etree.Element) {
			find(a, "Conditions", "AudienceRestriction", "Audience").SetText(ownEntity + "x")
		},
		"no conditions":                          remove("Conditions"),
		"a condition that is not understood":     func(_, a *etree.Element) { find(a, "Conditions").CreateElement("saml:Condition") },
		"conditions that are over":               set("NotOnOrAfter", past, "Conditions"),
		"conditions that are to come":            set("NotBefore", future, "Conditions"),
		"a time that is none":                    set("NotOnOrAfter", "soon", "Conditions"),
		"no recipient":                           drop("Recipient", data...),
		"another recipient":                      set("Recipient", ownConsumer+"/", data...),
		"no time":                                drop("NotOnOrAfter", data...),
		"a time that is over":                    set("NotOnOrAfter", past, data...),
		"a time that is to come":                 set("NotBefore", future, data...),
		"no request":                             drop("InResponseTo", data...),
		"another request":                        set("InResponseTo", "_other", data...),
		"another method":                         set("Method", "urn:oasis:names:tc:SAML:2.0:cm:sender-vouches", "Subject", "SubjectConfirmation"),
		"no confirmation":                        remove("Subject", "SubjectConfirmation"),
		"no subject":                             remove("Subject"),
		"a session that is over":                 set("SessionNotOnOrAfter", past, "AuthnStatement"),
		"another issuer":                         func(_, a *etree.Element) { find(a, "Issuer").SetText("urn:other") },
		"no issuer":                              remove("Issuer"),
		"an issue to come":                       set("IssueInstant", future),
		"another version":                        set("Version", "1.1"),
		"elements in the NameID":                 func(_, a *etree.Element) { find(a, "Subject", "NameID").CreateElement("saml:x") },
		"another destination":                    of(func(r *etree.Element) { r.CreateAttr("Destination", "https://other.test/post") }),
		"a response to another request":          of(func(r *etree.Element) { r.CreateAttr("InResponseTo", "_other") }),
		"a response to none":                     of(func(r *etree.Element) { r.RemoveAttr("InResponseTo") }),
		"a response of another issuer":           of(func(r *etree.Element) { find(r, "Issuer").SetText("urn:other") }),
		"a response of another version":          of(func(r *etree.Element) { r.CreateAttr("Version", "1.0") }),
		"a response to come":                     of(func(r *etree.Element) { r.CreateAttr("IssueInstant", future) }),
		"no status":                              of(func(r *etree.Element) { r.RemoveChild(find(r, "Status")) }),
		"a response with the assertion's own id": func(r, a *etree.Element) { r.CreateAttr("ID", a.SelectAttrValue("ID", "")) },
	} {
		t.Run(what, func(t *testing.T) {
			if login, err := p.expects().VerifyResponse(encode(p.signedAssertion(change))); !errors.Is(err, apierr.SAMLMalformed) {
				t.Errorf("the response returned %+v, %v", login, err)
			}
		})
	}
	t.Run("an answer to a request where none was sent", func(t *testing.T) {
		expected := p.expects()
		expected.RequestID = ""
		if _, err := expected.VerifyResponse(encode(p.xml(SHA256))); !errors.Is(err, apierr.SAMLMalformed) {
			t.Errorf("the answer to no request returned %v", err)
		}
	})
	t.Run("a failure at the identity provider", func(t *testing.T) {
		refusal, err := Refusal{
			Issuer: otherEntity, ConsumerURL: ownConsumer, InResponseTo: p.request, Reason: NoPassive, Message: "not now", Now: now,
		}.Sign(p.pair, SHA256)
		if err != nil {
			t.Fatal(err)
		}
		_, err = p.expects().VerifyResponse(encode(string(refusal)))
		if !errors.Is(err, apierr.SAMLFailed) || !strings.Contains(apierr.From(err).Reason, "not now") {
			t.Errorf("the response with a failure returned %v", err)
		}
	})
}

// Whatever is put around, beside or into a signed assertion, nobody is logged in by
// what is not signed. The first eight are the shapes of "On Breaking SAML" (Somorovsky
// and others, 2012).
func TestSignatureWrapping(t *testing.T) {
	p := newParty(t)
	// forged is a copy of an element that names another user, without a signature.
	forged := func(element *etree.Element) *etree.Element {
		evil := element.Copy()
		evil.CreateAttr("ID", "_evil")
		for _, signature := range childrenOf(evil, signatureNamespace, "Signature") {
			evil.RemoveChild(signature)
		}
		names := evil.FindElements(".//NameID")
		for _, name := range names {
			name.SetText("admin@example.test")
		}
		return evil
	}
	// signedBy are both parts with the signature of one of them.
	signedBy := func(ofResponse bool) (response, assertion, signature *etree.Element) {
		response, assertion = p.parts()
		if ofResponse {
			return response, assertion, p.sign(response)
		}
		return response, assertion, p.sign(assertion)
	}
	for what, make := range map[string]func() *etree.Element{
		"1: the signed response in the signature of a forged one": func() *etree.Element {
			response, _, signature := signedBy(true)
			evil, original := forged(response), response.Copy()
			original.RemoveChild(childOf(original, signatureNamespace, "Signature"))
			moved := signature.Copy()
			moved.AddChild(original)
			evil.AddChild(moved)
			return evil
		},
		"2: the signed response before the signature of a forged one": func() *etree.Element {
			response, _, signature := signedBy(true)
			evil, original := forged(response), response.Copy()
			original.RemoveChild(childOf(original, signatureNamespace, "Signature"))
			evil.AddChild(original)
			evil.AddChild(signature.Copy())
			return evil
		},
		"3: a forged assertion before the signed one": func() *etree.Element {
			response, assertion, _ := signedBy(false)
			response.InsertChildAt(assertion.Index(), forged(assertion))
			return response
		},
		"4: the signed assertion in a forged one": func() *etree.Element {
			response, assertion, _ := signedBy(false)
			evil := forged(assertion)
			response.RemoveChild(assertion)
			evil.AddChild(assertion)
			response.AddChild(evil)
			return response
		},
		"5: a forged assertion with the signature of the other": func() *etree.Element {
			response, assertion, signature := signedBy(false)
			evil := forged(assertion)
			assertion.RemoveChild(signature)
			evil.AddChild(signature)
			response.InsertChildAt(assertion.Index(), evil)
			return response
		},
		"6: the signed assertion in its signature in a forged one": func() *etree.Element {
			response, assertion, signature := signedBy(false)
			evil := forged(assertion)
			response.RemoveChild(assertion)
			assertion.RemoveChild(signature)
			signature.AddChild(assertion)
			evil.AddChild(signature)
			response.AddChild(evil)
			return response
		},
		"7: a forged assertion in extensions": func() *etree.Element {
			response, assertion, _ := signedBy(false)
			extensions := etree.NewElement("samlp:Extensions")
			extensions.AddChild(forged(assertion))
			response.InsertChildAt(1, extensions)
			return response
		},
		"8: the signed assertion in an object of the signature of a forged one": func() *etree.Element {
			response, assertion, signature := signedBy(false)
			evil := forged(assertion)
			response.RemoveChild(assertion)
			assertion.RemoveChild(signature)
			signature.CreateElement("ds:Object").AddChild(assertion)
			evil.AddChild(signature)
			response.AddChild(evil)
			return response
		},
		"two assertions that are signed": func() *etree.Element {
			response, assertion, _ := signedBy(false)
			response.AddChild(assertion.Copy())
			return response
		},
		"a forged response around a foreign signed one": func() *etree.Element {
			response, assertion, _ := signedBy(false)
			evil := forged(assertion)
			evil.CreateAttr("ID", assertion.SelectAttrValue("ID", ""))
			response.AddChild(evil)
			return response
		},
		"an assertion of no namespace": func() *etree.Element {
			response, assertion, _ := signedBy(false)
			evil := forged(assertion)
			evil.Space = ""
			response.InsertChildAt(0, evil)
			return response
		},
		"two signatures": func() *etree.Element {
			response, assertion, signature := signedBy(false)
			assertion.AddChild(signature.Copy())
			return response
		},
	} {
		t.Run(what, func(t *testing.T) {
			login, err := p.expects().VerifyResponse(encode(text(t, make())))
			if !errors.Is(err, apierr.SAMLMalformed) {
				t.Errorf("the wrapped response returned %+v, %v", login, err)
			}
		})
	}
}

func TestSignaturesThatDoNotHold(t *testing.T) {
	p := newParty(t)
	foreign := newParty(t)
	replaced := func(from, to string) string {
		before := p.signedAssertion(nil)
		after := strings.Replace(before, from, to, 1)
		if before == after {
			t.Fatalf("%s is not in %s", from, before)
		}
		return after
	}
	unsigned, _ := p.parts()
	bothOf := func() string { // a response of this provider around an assertion of another
		response, assertion := p.parts()
		foreign.sign(assertion)
		p.sign(response)
		return text(t, response)
	}
	around := func() string { // an unsigned response around a signed assertion of another
		response, assertion := foreign.parts()
		foreign.sign(assertion)
		return text(t, response)
	}
	for what, response := range map[string]string{
		"no signature":        text(t, unsigned),
		"another name":        replaced(">jo@", ">admin@"),
		"another key":         foreign.xml(SHA256),
		"a foreign assertion": around(),
		"a foreign assertion in a signed response": bothOf(),
		"SHA-1":                        p.xml(SHA1),
		"a hash of SHA-1":              replaced("xmlenc#sha256", "xmldsig#sha1"),
		"no algorithm":                 replaced(dsig.RSASHA256SignatureMethod, ""),
		"HMAC":                         replaced(dsig.RSASHA256SignatureMethod, "http://www.w3.org/2000/09/xmldsig#hmac-sha1"),
		"canonical form with comments": replaced("xml-exc-c14n#\"></ds:CanonicalizationMethod>", "xml-exc-c14n#WithComments\"></ds:CanonicalizationMethod>"),
		"a transform by a program":     replaced("xmldsig#enveloped-signature", "xmldsig#base64"),
		"a reference to everything":    replaced(`URI="#`, `URI="" x="#`),
		"a signature that is cut":      replaced("</ds:SignatureValue>", "AAAA</ds:SignatureValue>"),
	} {
		t.Run(what, func(t *testing.T) {
			if login, err := p.expects().VerifyResponse(encode(response)); !errors.Is(err, apierr.SAMLSignature) {
				t.Errorf("the response returned %+v, %v", login, err)
			}
		})
	}
	for what, made := range map[string]time.Time{
		"has expired": now.AddDate(-certificateYears-1, 0, 0), "has not begun": now.AddDate(1, 0, 0),
	} {
		t.Run("the key of a certificate that "+what+" signs", func(t *testing.T) {
			dated := p
			pair, err := newKeyPair(p.pair.Key, "idp", made)
			if err != nil {
				t.Fatal(err)
			}
			dated.pair = pair
			if _, err := dated.expects().VerifyResponse(encode(dated.xml(SHA256))); err != nil {
				t.Errorf("the response is refused: %v", err)
			}
		})
	}
}

// Parsers disagree about these; a message needs none of them.
func TestXMLThatIsRefused(t *testing.T) {
	p := newParty(t)
	response := p.signedAssertion(nil)
	body := strings.TrimPrefix(response, `<?xml version="1.0"?>`)
	var manyAttributes string
	for i := range maxAttributes {
		manyAttributes += fmt.Sprintf(` a%d=""`, i)
	}
	for what, text := range map[string]string{
		"a comment in the NameID":        strings.Replace(response, ">jo@example.test<", ">jo@example.test<!---->.evil.test<", 1),
		"a document type":                `<!DOCTYPE x>` + body,
		"an entity":                      `<!DOCTYPE x [<!ENTITY e "x">]>` + strings.Replace(body, ">jo@", ">&e;jo@", 1),
		"an external entity":             `<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]>` + strings.Replace(body, ">jo@", ">&e;jo@", 1),
		"an unknown entity":              strings.Replace(body, ">jo@", ">&e;jo@", 1),
		"a processing instruction":       strings.Replace(body, ">jo@", "><?x?>jo@", 1),
		"another encoding":               `<?xml version="1.0" encoding="UTF-7"?>` + body,
		"two roots":                      body + body,
		"text behind the root":           body + "x",
		"an id that stands twice":        strings.Replace(body, `<saml:Conditions`, `<saml:Conditions ID="_x" Id="_x"`, 1),
		"an attribute that stands twice": strings.Replace(body, ` Recipient=`, ` Recipient="x" Recipient=`, 1),
		"a colon in a name":              strings.Replace(body, `<saml:Conditions`, `<saml:x:Conditions`, 1),
		"a name that ends in a colon":    strings.Replace(body, ` Recipient=`, ` Recipient:="x" Recipient=`, 1),
		"many attributes":                strings.Replace(body, ` Recipient=`, manyAttributes+` Recipient=`, 1),
		"bytes that are not UTF-8":       strings.Replace(body, ">jo@", ">\xff@", 1),
		"a tower of elements":            strings.Repeat("<a>", maxDepth+1) + strings.Repeat("</a>", maxDepth+1),
		"many elements":                  "<a>" + strings.Repeat("<b/>", maxElements) + "</a>",
		"nothing":                        "", "no XML": "hello", "another message": strings.ReplaceAll(body, "samlp:Response", "samlp:LogoutResponse"),
		"a large message": strings.Repeat(" ", MaxResponse),
	} {
		t.Run(what, func(t *testing.T) {
			if login, err := p.expects().VerifyResponse(encode(text)); !errors.Is(err, apierr.SAMLMalformed) {
				t.Errorf("the refused XML returned %+v, %v", login, err)
			}
		})
	}
	if _, err := p.expects().VerifyResponse("!"); !errors.Is(err, apierr.SAMLMalformed) {
		t.Errorf("no Base64 returns %v", err)
	}
}
