// Package certtest makes certificates for tests. It panics where one cannot be made.
package certtest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"time"
)

// Pair is a certificate with its key.
type Pair struct {
	*x509.Certificate
	Key crypto.Signer
}

// Now makes a certificate that is valid now, for a day, and signs itself.
func Now(hosts ...string) Pair {
	return SelfSigned(time.Now().Add(-time.Hour), time.Now().AddDate(0, 0, 1), hosts...)
}

// SelfSigned makes a certificate of hosts, which are names or addresses. It signs itself, and others
// (Issue): a client that has it among its roots trusts both.
func SelfSigned(from, until time.Time, hosts ...string) Pair {
	return SelfSignedBy(newKey(), from, until, hosts...)
}

// SelfSignedBy is SelfSigned with a key.
func SelfSignedBy(key crypto.Signer, from, until time.Time, hosts ...string) Pair {
	template := templateOf(from, until, hosts)
	template.IsCA, template.KeyUsage = true, x509.KeyUsageDigitalSignature|x509.KeyUsageCertSign
	return sign(template, key, template, key)
}

// Issue makes a certificate of hosts that is signed by another.
func (p Pair) Issue(from, until time.Time, hosts ...string) Pair {
	template := templateOf(from, until, hosts)
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	return sign(template, newKey(), p.Certificate, p.Key)
}

// Chain returns the certificate in PEM.
func (p Pair) Chain() string { return encode("CERTIFICATE", p.Raw) }

// PrivateKey returns the key in PEM.
func (p Pair) PrivateKey() string {
	return encode("PRIVATE KEY", must(x509.MarshalPKCS8PrivateKey(p.Key)))
}

// Write writes the certificate and its key to two files that only their owner reads: servers
// refuse keys that others can read.
func (p Pair) Write(chain, key string) error {
	return errors.Join(os.WriteFile(chain, []byte(p.Chain()), 0o600), os.WriteFile(key, []byte(p.PrivateKey()), 0o600))
}

// TLS returns the certificate as a server presents it.
func (p Pair) TLS() tls.Certificate {
	return tls.Certificate{Certificate: [][]byte{p.Raw}, PrivateKey: p.Key, Leaf: p.Certificate}
}

// Roots returns the roots of a client that trusts this certificate and no other.
func (p Pair) Roots() *x509.CertPool {
	roots := x509.NewCertPool()
	roots.AddCert(p.Certificate)
	return roots
}

func newKey() crypto.Signer { return must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)) }

func templateOf(from, until time.Time, hosts []string) *x509.Certificate {
	template := &x509.Certificate{
		SerialNumber: must(rand.Int(rand.Reader, big.NewInt(1<<62))), NotBefore: from, NotAfter: until,
		BasicConstraintsValid: true,
	}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	if len(hosts) > 0 {
		template.Subject = pkix.Name{CommonName: hosts[0]}
	}
	return template
}

func sign(template *x509.Certificate, key crypto.Signer, parent *x509.Certificate, parentKey crypto.Signer) Pair {
	der := must(x509.CreateCertificate(rand.Reader, template, parent, key.Public(), parentKey))
	return Pair{must(x509.ParseCertificate(der)), key}
}

func encode(kind string, content []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: content}))
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}
