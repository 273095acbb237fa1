package field

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"strings"

	"github.com/doorward/doorward/pkg/apierr"
)

// Certificate validates one X.509 certificate in PEM with its begin and end lines, and returns value
// unchanged. White space around the lines is accepted: use TrimPEM before decoding the value. It
// returns apierr.Format (2006) for another text.
func Certificate(name, value string) (string, error) {
	block, rest := pem.Decode([]byte(TrimPEM(value)))
	if block == nil || block.Type != "CERTIFICATE" || len(bytes.TrimSpace(rest)) > 0 {
		return "", apierr.Format.Because("%s is not one certificate in PEM, from its begin line to its end line", name)
	}
	if _, err := x509.ParseCertificate(block.Bytes); err != nil {
		return "", apierr.Format.Because("%s is not an X.509 certificate", name)
	}
	return value, nil
}

// TrimPEM removes the white space around each line of a text in PEM, which many
// clients indent, so that encoding/pem reads it.
func TrimPEM(value string) string {
	lines := strings.Split(strings.TrimSpace(value), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimSpace(line)
	}
	return strings.Join(lines, "\n")
}
