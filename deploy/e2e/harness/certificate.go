package harness

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"time"
)

// certificates are PEM files for one gateway on this machine.
type certificates struct {
	CA   string // to trust
	Cert string // the gateway's certificate
	Key  string // and its private key
}

// makeCertificates makes a certificate authority and lets it sign one
// certificate for localhost, hosted pages and Client APIs. The authority's own key is forgotten at once.
func makeCertificates(config Config) (certificates, error) {
	files := certificates{CA: config.path("ca.pem"), Cert: config.path("gateway.pem"), Key: config.path("gateway.key")}
	fail := func(what string, err error) (certificates, error) {
		return certificates{}, fmt.Errorf("%s: %w", what, err)
	}
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fail("make the authority's key", err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fail("make the gateway's key", err)
	}
	now := time.Now()
	ca := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "Doorward end-to-end tests"},
		NotBefore:             now.Add(-time.Hour),
		NotAfter:              now.Add(30 * 24 * time.Hour),
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign,
	}
	server := &x509.Certificate{
		SerialNumber: big.NewInt(2),
		Subject:      pkix.Name{CommonName: "localhost"},
		NotBefore:    ca.NotBefore,
		NotAfter:     ca.NotAfter,
		DNSNames:     []string{"localhost", "*.localhost", "*.id.localhost", "*.apps.localhost"},
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	caDER, err := x509.CreateCertificate(rand.Reader, ca, ca, &caKey.PublicKey, caKey)
	if err != nil {
		return fail("sign the authority", err)
	}
	serverDER, err := x509.CreateCertificate(rand.Reader, server, ca, &key.PublicKey, caKey)
	if err != nil {
		return fail("sign the gateway's certificate", err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return fail("encode the gateway's key", err)
	}
	for _, file := range []struct {
		path, kind string
		der        []byte
		mode       os.FileMode
	}{
		{files.CA, "CERTIFICATE", caDER, 0o644},
		{files.Cert, "CERTIFICATE", serverDER, 0o644},
		{files.Key, "PRIVATE KEY", keyDER, 0o600},
	} {
		raw := pem.EncodeToMemory(&pem.Block{Type: file.kind, Bytes: file.der})
		if err := os.WriteFile(file.path, raw, file.mode); err != nil {
			return fail("write a certificate", err)
		}
	}
	return files, nil
}
