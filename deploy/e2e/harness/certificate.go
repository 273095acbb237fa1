package harness

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// Authority signs the certificates of servers on this machine. Its key lives in
// memory only.
type Authority struct {
	// CAFile is the authority's certificate in PEM.
	CAFile string

	certificate *x509.Certificate
	key         *ecdsa.PrivateKey

	mu     sync.Mutex
	serial int64
}

// NewAuthority makes an authority and writes its certificate into the folder.
func NewAuthority(dir string) (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make the authority's key: %w", err)
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "Doorward end-to-end tests"},
		NotBefore:             now.Add(-time.Hour),
		NotAfter:              now.Add(30 * 24 * time.Hour),
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, fmt.Errorf("sign the authority: %w", err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("read the authority: %w", err)
	}
	a := &Authority{CAFile: filepath.Join(dir, "ca.pem"), certificate: certificate, key: key, serial: 1}
	return a, WritePEM(a.CAFile, "CERTIFICATE", der)
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
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", "", fmt.Errorf("make a key: %w", err)
	}
	a.mu.Lock()
	a.serial++
	serial := a.serial
	a.mu.Unlock()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial),
		Subject:      pkix.Name{CommonName: hosts[0]},
		NotBefore:    a.certificate.NotBefore,
		NotAfter:     expires,
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, &private.PublicKey, a.key)
	if err != nil {
		return "", "", fmt.Errorf("sign a certificate: %w", err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return "", "", fmt.Errorf("encode a key: %w", err)
	}
	cert, key = filepath.Join(dir, "server.pem"), filepath.Join(dir, "server.key")
	if err := WritePEM(cert, "CERTIFICATE", der); err != nil {
		return "", "", err
	}
	return cert, key, WritePEM(key, "PRIVATE KEY", pkcs8)
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
