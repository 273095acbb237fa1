package connectors

import (
	"encoding/pem"
	"os"
	"path/filepath"
	"testing"
)

// VerifySignature lets xmlsec1 verify the enveloped signature of the first element
// with this local name ("Response", "Assertion" or "EntityDescriptor"), by a
// certificate in PEM.
func VerifySignature(t testing.TB, document, element, certificate string) error {
	t.Helper()
	dir, err := os.MkdirTemp("", "xmlsec-") // xmlsec1 takes no comma in a path, which the name of a test may have
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	file, trusted := filepath.Join(dir, "document.xml"), filepath.Join(dir, "certificate.pem")
	for name, content := range map[string]string{file: document, trusted: certificate} {
		must(t, os.WriteFile(name, []byte(content), 0o600))
	}
	_, err = command(t.Context(), nil, "", "xmlsec1", "--verify",
		"--id-attr:ID", "urn:oasis:names:tc:SAML:2.0:protocol:Response",
		"--id-attr:ID", "urn:oasis:names:tc:SAML:2.0:assertion:Assertion",
		"--id-attr:ID", "urn:oasis:names:tc:SAML:2.0:metadata:EntityDescriptor",
		"--enabled-key-data", "x509", "--pubkey-cert-pem", trusted,
		"--node-xpath", "(//*[local-name()='"+element+"'])[1]/*[local-name()='Signature']", file)
	return err
}

// certificatePEM is a certificate of SAML metadata, which is Base64 alone, in PEM.
func certificatePEM(der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}
