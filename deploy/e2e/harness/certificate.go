package harness

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// Authority signs the certificates of servers on this machine. Its key lives in
// memory only.
type Authority struct {
	// CAFile is the authority's certificate in PEM.
	CAFile string

	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// NewAuthority makes an authority and writes its certificate into the folder.
func NewAuthority(dir string) (*Authority, error) {
	template := certificateOf("Doorward end-to-end tests", time.Now().Add(30*24*time.Hour))
	template.IsCA, template.BasicConstraintsValid, template.KeyUsage = true, true, x509.KeyUsageCertSign
	der, key, err := (&Authority{}).sign(template)
	if err != nil {
		return nil, err
	}
	a := &Authority{CAFile: filepath.Join(dir, "ca.pem"), key: key}
	if a.certificate, err = x509.ParseCertificate(der); err != nil {
		return nil, fmt.Errorf("read the authority: %w", err)
	}
	return a, WritePEM(a.CAFile, "CERTIFICATE", der)
}

// certificateOf begins a certificate with a name.
func certificateOf(name string, expires time.Time) *x509.Certificate {
	serial, _ := rand.Int(rand.Reader, big.NewInt(1<<62)) // never fails
	return &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: expires,
	}
}

// sign makes a key and its certificate, which without an authority signs itself.
func (a *Authority) sign(template *x509.Certificate) (der []byte, key *ecdsa.PrivateKey, err error) {
	if key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		return nil, nil, fmt.Errorf("make a key: %w", err)
	}
	parent, signer := a.certificate, a.key
	if parent == nil {
		parent, signer = template, key
	}
	if der, err = x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer); err != nil {
		return nil, nil, fmt.Errorf("sign a certificate: %w", err)
	}
	return der, key, nil
}

// TLS is the configuration of a client that trusts the authority and no other.
func (a *Authority) TLS() *tls.Config {
	roots := x509.NewCertPool()
	roots.AddCert(a.certificate)
	return &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
}

// Issue writes a certificate for names and addresses of this machine, and its
// private key, into the folder.
func (a *Authority) Issue(dir string, hosts ...string) (cert, key string, err error) {
	return a.IssueUntil(a.certificate.NotAfter, dir, hosts...)
}

// IssueUntil is Issue for a certificate that expires at a time.
func (a *Authority) IssueUntil(expires time.Time, dir string, hosts ...string) (cert, key string, err error) {
	template := certificateOf(hosts[0], expires)
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	der, private, err := a.sign(template)
	if err != nil {
		return "", "", err
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return "", "", fmt.Errorf("encode a key: %w", err)
	}
	cert, key = filepath.Join(dir, "server.pem"), filepath.Join(dir, "server.key")
	return cert, key, errors.Join(WritePEM(cert, "CERTIFICATE", der), WritePEM(key, "PRIVATE KEY", pkcs8))
}

// WritePEM writes a certificate or a key to a file that only its owner reads:
// servers refuse keys that others can read.
func WritePEM(path, kind string, der []byte) error {
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		return fmt.Errorf("write a certificate: %w", err)
	}
	return nil
}

// GatewayHosts are the names that a gateway's certificate is for: localhost, hosted
// pages and Client APIs.
var GatewayHosts = []string{"localhost", "*.localhost", "*.id.localhost", "*.apps.localhost", "127.0.0.1", "::1"}
