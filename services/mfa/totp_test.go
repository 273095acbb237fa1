package mfa_test

import (
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward/services/mfa"
	"github.com/doorward/doorward/services/mfa/mfatest"
)

// The vectors of RFC 6238, appendix B, for SHA-1. They have eight digits, of
// which a code of six is the last six.
func TestAuthenticatorCodesAreThoseOfRFC6238(t *testing.T) {
	const secret = "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ" // 12345678901234567890
	for unix, code := range map[int64]string{
		59: "94287082", 1111111109: "07081804", 1111111111: "14050471", 1234567890: "89005924", 2000000000: "69279037",
		20000000000: "65353130",
	} {
		code, step := code[2:], unix/30
		for at, want := range map[int64]int64{unix: step, unix - 30: step, unix + 30: step, unix + 60: 0, unix - 60: 0} {
			got, err := mfa.AcceptedStep(secret, code, time.Unix(max(at, 0), 0), -1)
			if err != nil || got != want && at >= 0 {
				t.Errorf("%s at %d is the code of step %d, %v; want %d", code, at, got, err, want)
			}
		}
		if got, err := mfa.AcceptedStep(secret, code, time.Unix(unix, 0), step); err != nil || got != 0 {
			t.Errorf("%s is accepted again: step %d, %v", code, got, err)
		}
	}
	for _, code := range []string{"", "287082 ", "87082", "0287082", "94287082"} {
		if got, err := mfa.AcceptedStep(secret, code, time.Unix(59, 0), -1); err != nil || got != 0 {
			t.Errorf("%q is the code of step %d, %v", code, got, err)
		}
	}
	if _, err := mfa.AcceptedStep("not base 32!", "287082", time.Unix(59, 0), -1); err == nil {
		t.Error("a secret that is none has codes")
	}
}

func TestQRCodesAreReadBack(t *testing.T) {
	for _, text := range []string{
		"otpauth://totp/jo?secret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ",
		"otpauth://totp/" + strings.Repeat("Shop%20", 36) + ":" + strings.Repeat("jo",
			127) + "?secret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ&issuer=" + strings.Repeat("Shop%20", 36),
	} {
		picture, err := mfa.DrawQRCode(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := mfatest.ReadQRCode(t, picture); got != text {
			t.Errorf("%q is read as %q", text, got)
		}
	}
	if _, err := mfa.DrawQRCode(strings.Repeat("%", 2953)); err != nil {
		t.Errorf("as much as fits: %v", err)
	}
	if _, err := mfa.DrawQRCode(strings.Repeat("%", 2954)); err == nil {
		t.Error("more is drawn than a QR code holds")
	}
}
