package connectors

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	_ "embed"

	"github.com/doorward/doorward/deploy/e2e"
	"github.com/doorward/doorward/deploy/e2e/harness"
	"github.com/doorward/doorward/pkg/certificate/certtest"
)

//go:embed pysaml.py
var pysamlScript []byte

// PySAML is a SAML identity provider and a service provider by pysaml2. Its addresses are
// known after NewPySAML; it runs from Start on.
type PySAML struct {
	// URL is its address; the script says what lies below it.
	URL string

	// Certificate is that of its signatures, in PEM.
	Certificate string

	authority *harness.Authority
	dir       string
	port      int
}

// SAMLUser is the one user of the identity provider, with the attributes of its assertions.
type SAMLUser struct {
	NameID     string              `json:"name_id"`
	Attributes map[string][]string `json:"attributes"`
}

// SAMLOptions are how the identity provider signs and encrypts its responses.
type SAMLOptions struct {
	SignResponse, SignAssertion bool
	EncryptFor                  string // a certificate in PEM; empty encrypts nothing
}

// NewPySAML prepares a key pair and an address.
func NewPySAML(t testing.TB, authority *harness.Authority) *PySAML {
	t.Helper()
	p := &PySAML{authority: authority, dir: t.TempDir(), port: harness.FreePort()}
	p.URL = "https://localhost:" + strconv.Itoa(p.port)
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	must(t, err)
	certificate := certtest.SelfSignedBy(key, time.Now().Add(-time.Hour), time.Now().AddDate(0, 0, 90), "pysaml2")
	must(t, certificate.Write(p.path("signing.pem"), p.path("signing.key")))
	// xmlsec1 reads keys of PKCS #1 in all of its releases.
	// xmlsec1 reads keys of PKCS #1 in all of its releases.
	pkcs1 := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})
	must(t, os.WriteFile(p.path("signing.key"), pkcs1, 0o600))
	p.Certificate = certificate.Chain()
	return p
}

// Start runs it until the test ends. The metadata is that of the product in the
// other role.
func (p *PySAML) Start(t testing.TB, metadata []byte, user SAMLUser, options SAMLOptions) {
	t.Helper()
	venv, err := harness.Fetched("pysaml2")
	must(t, err)
	_, err = harness.Program("xmlsec1", "connectors")
	must(t, err)
	for name, content := range map[string][]byte{"pysaml.py": pysamlScript, "other.xml": metadata} {
		must(t, os.WriteFile(p.path(name), content, 0o644))
	}
	cert, key, err := p.authority.Issue(p.dir, "localhost", "127.0.0.1")
	must(t, err)
	settings, err := json.Marshal(e2e.Object{
		"address": p.URL, "port": p.port, "cert": cert, "key": key, "metadata": []string{p.path("other.xml")}, "user": user,
		"signing_cert": p.path("signing.pem"), "signing_key": p.path("signing.key"), "sign_response": options.SignResponse,
		"sign_assertion": options.SignAssertion, "encrypt_for": options.EncryptFor,
	})
	must(t, err)
	client, err := clientTrusting(p.authority)
	must(t, err)
	serve(t, harness.NewDaemon("pysaml2", p.path("pysaml.log"), answersOK(client, p.URL+"/sp/metadata"),
		filepath.Join(venv, "bin", "python"), "-u", p.path("pysaml.py"), string(settings)))
}

func (p *PySAML) path(name string) string { return filepath.Join(p.dir, name) }
