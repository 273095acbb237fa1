package field

import (
	"bytes"
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/certificate/certtest"
)

func TestURL(t *testing.T) {
	web, free := URL("https", "http"), URL()
	for _, c := range []struct {
		value     string
		web, free bool
	}{
		{"https://a.test", true, true},
		{"https://a.test:65535/b?c=d", true, true},
		{"http://[::1]:8080/", true, true},
		{"HTTPS://a.test/", true, true},
		{"myapp://callback", false, true},
		{"myapp:/callback", false, true},
		{"/callback", false, false},
		{"a.test", false, false},
		{"https://", false, false},
		{"http:///path", false, false},
		{"https:a.test", false, false},
		{"https://:443/", false, false},
		{"https://a.test:0/", false, false},
		{"https://a.test:65536/", false, false},
		{"myapp://callback:99999/", false, false},
		{"https://jo@a.test/", false, false},
		{"https://a.test/#f", false, false},
		{"https://a.test/ b", false, false},
	} {
		for _, check := range []struct {
			of   func(name, value string) (string, error)
			good bool
		}{{web, c.web}, {free, c.free}} {
			value, err := check.of("link", c.value)
			if good := err == nil && value == c.value; good != check.good || err != nil && !errors.Is(err, apierr.Format) {
				t.Errorf("%s: %q, %v", c.value, value, err)
			}
		}
	}
}

func TestACertificateIsTakenAsClientsCopyIt(t *testing.T) {
	certificate := certtest.Now()
	plain, bare := certificate.Chain(), base64.StdEncoding.EncodeToString(certificate.Raw)
	wrapped := bare[:64] + "\n" + bare[64:]
	for name, value := range map[string]string{
		"bare Base64": bare, "bare Base64 in lines": wrapped, "one line": strings.ReplaceAll(plain, "\n", " "),
		"line breaks as two characters": strings.ReplaceAll(plain, "\n", `\n`), "Windows": strings.ReplaceAll(plain, "\n", `\r\n`),
		"lines of openssl before": "Bag Attributes\n    localKeyID: 01\n" + plain,
		"plain":                   plain, "indented": "  " + strings.ReplaceAll(plain, "\n", " \t\r\n    ") + "\n\n", "no last line break": strings.TrimSpace(plain),
	} {
		if got, err := Certificate("certificate", value); err != nil || got != value {
			t.Errorf("%s: %v", name, err)
		}
		if parsed, err := ParseCertificate("certificate", value); err != nil || !bytes.Equal(parsed.Raw, certificate.Raw) {
			t.Errorf("%s: the certificate that is parsed is another, %v", name, err)
		}
	}
	for name, value := range map[string]string{
		"two": plain + plain, "text before": "x" + plain, "no end": plain[:len(plain)-30], "another type": strings.ReplaceAll(plain, "CERTIFICATE", "PRIVATE KEY"),
		"none": "", "Base64 that is cut": bare[:len(bare)-8], "Base64 of something else": "aGVsbG8=", "white space": " \n ",
		"not X.509": "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
	} {
		if _, err := Certificate("certificate", value); !errors.Is(err, apierr.Format) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
