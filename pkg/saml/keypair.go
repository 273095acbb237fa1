package saml

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha1"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"math/big"
	"time"

	"github.com/doorward/doorward/pkg/secure"
)

// certificateYears is the validity of a certificate. Most other parties use its key and ignore its
// dates.
const certificateYears = 10

// KeyPair signs messages of SAML, and decrypts assertions.
type KeyPair struct {
	Certificate string // self-signed, in PEM
	Key         *rsa.PrivateKey
}

// ReadKeyPair parses a key pair: a certificate in PEM and an RSA key in PKCS #8. It validates the key,
// which takes a tenth of a millisecond.
func ReadKeyPair(certificate string, private secure.Secret) (KeyPair, error) {
	parsed, err := x509.ParsePKCS8PrivateKey([]byte(private.Reveal()))
	if err != nil {
		return KeyPair{}, err
	}
	key, ok := parsed.(*rsa.PrivateKey)
	if !ok {
		return KeyPair{}, errors.New("the private key is not RSA")
	}
	return KeyPair{certificate, key}, nil
}

// PrivateKey returns the key in PKCS #8.
func (p KeyPair) PrivateKey() (secure.Secret, error) {
	private, err := x509.MarshalPKCS8PrivateKey(p.Key)
	return secure.Secret(private), err
}

// NewKeyPair generates a key pair with a self-signed certificate for the name. It takes some
// tenths of a second, so that no transaction may be open. The key is an RSA key, because messages
// are signed with RSA (docs/interface/directories.md#saml).
func NewKeyPair(name string, now time.Time) (KeyPair, error) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return KeyPair{}, err
	}
	return newKeyPair(key, name, now)
}

func newKeyPair(key *rsa.PrivateKey, name string, now time.Time) (KeyPair, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return KeyPair{}, err
	}
	template := x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name}, SignatureAlgorithm: x509.SHA256WithRSA,
		// an hour before, for clocks that are late
		NotBefore: now.Add(-time.Hour), NotAfter: now.AddDate(certificateYears, 0, 0),
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment, BasicConstraintsValid: true,
	}
	signed, err := x509.CreateCertificate(rand.Reader, &template, &template, &key.PublicKey, key)
	if err != nil {
		return KeyPair{}, err
	}
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed})
	return KeyPair{string(certificate), key}, nil
}

// Fingerprint returns the SHA-1 of a certificate that NewKeyPair made, in
// hexadecimal.
func Fingerprint(certificate string) string {
	sum := sha1.Sum(der(certificate))
	return hex.EncodeToString(sum[:])
}

// der returns the DER bytes of a certificate in PEM.
func der(certificate string) []byte {
	block, _ := pem.Decode([]byte(certificate))
	if block == nil {
		return nil
	}
	return block.Bytes
}
