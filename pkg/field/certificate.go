package field

import (
	"crypto/x509"
	"encoding/base64"
	"strings"

	"github.com/doorward/doorward/pkg/apierr"
)

// Certificate validates one X.509 certificate (ParseCertificate) and returns value unchanged, so that a
// client gets back what it has sent. It returns apierr.Format (2006) for another text.
func Certificate(name, value string) (string, error) {
	_, err := ParseCertificate(name, value)
	return value, err
}

const (
	beginCertificate = "-----BEGIN CERTIFICATE-----"
	endCertificate   = "-----END CERTIFICATE-----"
)

// ParseCertificate parses one X.509 certificate in the forms in which clients copy it: PEM with its begin
// and end lines, or the Base64 alone, as the metadata of SAML has it. White space may be anywhere, in
// place of line breaks too, and a line break may be the two characters \n of a JSON text that was encoded
// twice. It does not look at the dates. It returns apierr.Format (2006) for another text.
func ParseCertificate(name, value string) (*x509.Certificate, error) {
	text := strings.TrimSpace(strings.NewReplacer(`\r`, "\r", `\n`, "\n").Replace(value))
	if before, from, isPEM := strings.Cut(text, beginCertificate); isPEM {
		body, rest, ends := strings.Cut(from, endCertificate)
		if !ends || strings.TrimSpace(rest) != "" || !strings.HasSuffix("\n"+strings.TrimRight(before, " \t\r"), "\n") {
			return nil, apierr.Format.Because("%s is not one certificate in PEM, from its begin line to its end line",
				name)
		}
		text = body
	}
	der, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(text), ""))
	if err != nil || len(der) == 0 {
		return nil, apierr.Format.Because("%s is not a certificate in PEM or Base64", name)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, apierr.Format.Because("%s is not an X.509 certificate", name)
	}
	return certificate, nil
}
