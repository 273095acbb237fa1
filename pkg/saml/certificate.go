package saml

import (
	"crypto/rsa"
	"crypto/x509"
	"errors"
	"slices"
	"time"

	"github.com/doorward/doorward/pkg/field"
)

// The states of a certificate by its dates. They are for people: a certificate of SAML carries a key, and
// the key is used whatever the dates say (OASIS, SAML V2.0 Metadata Interoperability Profile, section
// 2.6.1). Otherwise all users of an identity provider would be locked out on the day on which its
// certificate ends, although its key is as good as the day before.
const (
	CertificateValid       = "VALID"
	CertificateExpiresSoon = "EXPIRES_SOON"
	CertificateNotYetValid = "NOT_YET_VALID"
	CertificateExpired     = "EXPIRED"
)

// certificateWarning is how long before its end a certificate is CertificateExpiresSoon.
const certificateWarning = 30 * 24 * time.Hour

// statesByMerit are the states from the best to the worst.
var statesByMerit = []string{CertificateValid, CertificateExpiresSoon, CertificateNotYetValid, CertificateExpired, ""}

// CertificateStatus returns the state of the best of some certificates, because a party that replaces its
// certificate has two for a while. It ignores texts that are no certificate, and returns "" where there
// is none.
func CertificateStatus(now time.Time, certificates ...string) string {
	best := ""
	for _, text := range certificates {
		certificate, err := field.ParseCertificate("certificate", text)
		if err != nil {
			continue
		}
		state := certificateState(now, certificate)
		if slices.Index(statesByMerit, state) < slices.Index(statesByMerit, best) {
			best = state
		}
	}
	return best
}

func certificateState(now time.Time, certificate *x509.Certificate) string {
	switch remaining := certificate.NotAfter.Sub(now); {
	case now.Before(certificate.NotBefore):
		return CertificateNotYetValid
	case remaining <= 0:
		return CertificateExpired
	case remaining <= certificateWarning:
		return CertificateExpiresSoon
	}
	return CertificateValid
}

// publicKey returns the RSA key of a certificate, whatever its dates.
func publicKey(certificate string) (*rsa.PublicKey, error) {
	parsed, err := field.ParseCertificate("certificate", certificate)
	if err != nil {
		return nil, err
	}
	key, ok := parsed.PublicKey.(*rsa.PublicKey)
	if !ok {
		return nil, errors.New("the key is not RSA")
	}
	return key, nil
}
