package app

import (
	"os"
	"testing"
)

func TestARenewedCertificateIsReadFromItsFiles(t *testing.T) {
	given, _ := variables(t)
	from := source(given)
	cfg := FromEnv(from)
	if err := from.Err(); err != nil {
		t.Fatal(err)
	}
	cert, key, _ := pair(t)
	for variable, path := range map[string]string{"DOORWARD_TLS_CERT_FILE": cert, "DOORWARD_TLS_KEY_FILE": key} {
		text, err := os.ReadFile(path)
		if err == nil {
			err = os.WriteFile(given[variable], text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	var renewed TLS
	if err := cfg.TLS.Reload(&renewed); err != nil || renewed.Certificate == cfg.TLS.Certificate || renewed.Key == cfg.TLS.Key || renewed.Mode != cfg.TLS.Mode {
		t.Errorf("the certificate is read again as %+v, %v", renewed, err)
	}
	if err := os.Remove(given["DOORWARD_TLS_KEY_FILE"]); err != nil {
		t.Fatal(err)
	}
	if err := cfg.TLS.Reload(&renewed); err == nil {
		t.Error("a file that is gone is no error")
	}
}
