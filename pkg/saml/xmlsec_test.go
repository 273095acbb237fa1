package saml

import (
	"encoding/pem"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// xmlsec runs xmlsec1 of the machine.
func xmlsec(t *testing.T, arguments ...string) (string, error) {
	t.Helper()
	path, err := exec.LookPath("xmlsec1")
	if err != nil {
		t.Fatal("the signatures are compared with those of xmlsec1; install it with: deploy/setup/setup.sh xmlsec1")
	}
	out, err := exec.CommandContext(t.Context(), path, arguments...).CombinedOutput()
	return string(out), err
}

func file(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Another implementation verifies every signature that is made, and a message that it
// has signed is accepted.
func TestSignaturesOfAnotherImplementation(t *testing.T) {
	p := newParty(t)
	certificate := file(t, "certificate.pem", p.pair.Certificate)
	verify := func(t *testing.T, document, path string) {
		t.Helper()
		out, err := xmlsec(t, "--verify", "--enabled-reference-uris", "same-doc", "--pubkey-cert-pem", certificate,
			"--id-attr:ID", protocol+":Response", "--id-attr:ID", assertionNamespace+":Assertion", "--node-xpath", path, file(t, "message.xml", document))
		if err != nil {
			t.Errorf("xmlsec1 says %v: %s", err, out)
		}
	}
	for _, algorithm := range []string{SHA256, SHA1} {
		t.Run("a response with "+algorithm, func(t *testing.T) {
			response := p.xml(algorithm)
			verify(t, response, "/*/*[local-name()='Signature']")
			verify(t, response, "/*/*[local-name()='Assertion']/*[local-name()='Signature']")
		})
	}
	t.Run("a refusal", func(t *testing.T) {
		refusal, err := Refusal{Issuer: otherEntity, ConsumerURL: ownConsumer, InResponseTo: "_r", Reason: NoPassive, Now: now}.Sign(p.pair, SHA256)
		if err != nil {
			t.Fatal(err)
		}
		verify(t, string(refusal), "/*/*[local-name()='Signature']")
	})
	t.Run("a response that it has signed", func(t *testing.T) {
		response, assertion := p.parts()
		signature := root(t, `<ds:Signature xmlns:ds="`+signatureNamespace+`"><ds:SignedInfo><ds:CanonicalizationMethod Algorithm="`+canonicalizations[0]+
			`"/><ds:SignatureMethod Algorithm="`+signatureAlgorithms[0]+`"/><ds:Reference URI="#`+assertion.SelectAttrValue("ID", "")+
			`"><ds:Transforms><ds:Transform Algorithm="http://www.w3.org/2000/09/xmldsig#enveloped-signature"/><ds:Transform Algorithm="`+canonicalizations[0]+
			`"/></ds:Transforms><ds:DigestMethod Algorithm="`+hashAlgorithms[0]+`"/><ds:DigestValue/></ds:Reference></ds:SignedInfo><ds:SignatureValue/>`+
			`<ds:KeyInfo><ds:X509Data/></ds:KeyInfo></ds:Signature>`)
		assertion.InsertChildAt(1, signature)
		private, err := p.pair.PrivateKey()
		if err != nil {
			t.Fatal(err)
		}
		key := file(t, "key.pem", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte(private.Reveal())})))
		signed := filepath.Join(t.TempDir(), "signed.xml")
		out, err := xmlsec(t, "--sign", "--privkey-pem", key, "--id-attr:ID", assertionNamespace+":Assertion", "--output", signed,
			file(t, "template.xml", text(t, response)))
		if err != nil {
			t.Fatalf("xmlsec1 says %v: %s", err, out)
		}
		message, err := os.ReadFile(signed)
		if err != nil {
			t.Fatal(err)
		}
		if login, err := p.expects().VerifyResponse(encode(string(message))); err != nil || !strings.HasPrefix(login.NameID, "jo@") {
			t.Errorf("the response signed by xmlsec1 returned %+v, %v: %s", login, err, message)
		}
	})
}
