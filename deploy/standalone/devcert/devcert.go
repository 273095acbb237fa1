// Package devcert makes the certificates of a newcomer's deployment: an authority of its own, which browsers and clients
// do not know, and a server certificate that it has signed. The gateway loads it: gateway/app/tls.go, pkg/certificate.
package devcert

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// How long certificates are valid, and how long before they expire a start renews them.
const (
	authorityYears = 10
	serverDays     = 397
	renewBefore    = 30 * 24 * time.Hour
)

// Folder is where the certificates are: ca.pem and server.pem, and ca-key.pem and server-key.pem.
type Folder struct {
	Path string
	// Write writes a file of the folder, which nobody else may read.
	Write func(name string, data []byte) error
}

func (f Folder) join(name string) string { return filepath.Join(f.Path, name) }

// Ensure makes the authority where there is none, and a server certificate for the hosts whenever there is none that is
// valid for them. A host may begin with "*.".
func (f Folder) Ensure(name string, hosts []string) error {
	authority, authorityKey, err := f.load("ca",
		func(c *x509.Certificate) bool { return time.Until(c.NotAfter) > renewBefore })
	if err != nil {
		return err
	}
	now := time.Now()
	if authority == nil {
		template := &x509.Certificate{
			Subject:   pkix.Name{CommonName: "Doorward development authority"},
			NotBefore: now.Add(-time.Hour), NotAfter: now.AddDate(authorityYears, 0, 0),
			IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true,
			KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
		}
		if authority, authorityKey, err = f.issue("ca", template, nil, nil); err != nil {
			return err
		}
	}
	server, _, err := f.load("server", func(c *x509.Certificate) bool {
		if time.Until(c.NotAfter) < renewBefore || c.CheckSignatureFrom(authority) != nil {
			return false
		}
		for _, host := range hosts {
			if c.VerifyHostname(strings.Replace(host, "*", "any", 1)) != nil {
				return false
			}
		}
		return true
	})
	if err != nil {
		return err
	}
	if server == nil {
		template := &x509.Certificate{
			Subject:   pkix.Name{CommonName: name},
			NotBefore: now.Add(-time.Hour), NotAfter: now.AddDate(0, 0, serverDays),
			KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
			BasicConstraintsValid: true,
		}
		for _, host := range hosts {
			if ip := net.ParseIP(host); ip != nil {
				template.IPAddresses = append(template.IPAddresses, ip)
			} else {
				template.DNSNames = append(template.DNSNames, host)
			}
		}
		if _, _, err = f.issue("server", template, authority, authorityKey); err != nil {
			return err
		}
	}
	return nil
}

// load reads a certificate and its key from the folder. Where there is
// none, or accept refuses it, the certificate is nil and there is no error.
func (f Folder) load(
	name string, accept func(*x509.Certificate) bool,
) (*x509.Certificate, *ecdsa.PrivateKey, error) {
	certPEM, err := os.ReadFile(f.join(name + ".pem"))
	keyPEM, err2 := os.ReadFile(f.join(name + "-key.pem"))
	if err := errors.Join(err, err2); errors.Is(err, os.ErrNotExist) {
		return nil, nil, nil
	} else if err != nil {
		return nil, nil, err
	}
	certBlock, _ := pem.Decode(certPEM)
	keyBlock, _ := pem.Decode(keyPEM)
	if certBlock == nil || keyBlock == nil {
		return nil, nil, nil
	}
	cert, err := x509.ParseCertificate(certBlock.Bytes)
	if err != nil || !accept(cert) {
		return nil, nil, nil //nolint:nilerr // what cannot be read is made again
	}
	key, err := x509.ParseECPrivateKey(keyBlock.Bytes)
	if err != nil || !key.PublicKey.Equal(cert.PublicKey) {
		return nil, nil, nil //nolint:nilerr // likewise
	}
	return cert, key, nil
}

// issue makes a key pair and its certificate, signed by the authority or, without one,
// by itself, and writes both into the folder.
func (f Folder) issue(
	name string, template, authority *x509.Certificate, authorityKey *ecdsa.PrivateKey,
) (*x509.Certificate, *ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	if template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127)); err != nil {
		return nil, nil, err
	}
	if authority == nil {
		authority, authorityKey = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, authority, &key.PublicKey, authorityKey)
	if err != nil {
		return nil, nil, fmt.Errorf("make the certificate %s: %w", name, err)
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, nil, err
	}
	if err := f.Write(name+"-key.pem", pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER})); err != nil {
		return nil, nil, err
	}
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	if err := f.Write(name+".pem", certPEM); err != nil {
		return nil, nil, err
	}
	cert, err := x509.ParseCertificate(der)
	return cert, key, errors.Join(err, os.Chmod(f.join(name+".pem"), 0o644))
}
