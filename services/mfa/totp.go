package mfa

import (
	"bytes"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base32"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"net/url"
	"strings"
	"time"

	"github.com/boombuler/barcode/qr"
	"github.com/pquerna/otp"
	verifyTOTP "github.com/pquerna/otp/hotp"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/mfa/store"
)

const (
	secretLength    = 20 // bytes, as RFC 4226, section 4, recommends for SHA-1
	minSecretLength = 10 // bytes of a secret that was made elsewhere
	maxSecretLength = 64
	stepSeconds     = 30 // length of a time step
	clockSkewSteps  = 1  // time steps of clock skew that an authenticator may have
	maxLabel        = 255
)

// secretPurpose is the purpose for which the TOTP secret of a factor is sealed.
func secretPurpose(factor id.ID) string { return "mfa.factor/" + factor.String() }

// Sealed are the columns of values that are sealed under the master key for
// longer than a challenge is open.
var Sealed = []secure.SealedColumn[id.ID]{
	{Table: "factors", Key: "id", Column: "secret_sealed", Purpose: secretPurpose},
	{Table: "challenges", Key: "id", Column: "code_key_sealed", Purpose: codeKeyPurpose},
}

// newTOTPSecret returns a random secret (seed) of an authenticator, in Base32.
func newTOTPSecret() secure.Secret {
	secret := make([]byte, secretLength)
	_, _ = rand.Read(secret)
	return secure.Secret(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(secret))
}

// readTOTPSecret reads the secret of an authenticator that was enrolled elsewhere: Base32 of 10 to 64
// bytes, in any letter case, with white space and padding or without. It returns the secret in the
// form of newTOTPSecret, or apierr.Format.
func readTOTPSecret(text secure.Secret) (secure.Secret, error) {
	secret := strings.TrimRight(strings.ToUpper(strings.Join(strings.Fields(text.Reveal()), "")), "=")
	bytes, err := base32.StdEncoding.WithPadding(base32.NoPadding).DecodeString(secret)
	if err != nil || len(bytes) < minSecretLength || len(bytes) > maxSecretLength {
		return "", apierr.Format.Because("secret must be the Base32 form of %d to %d bytes", minSecretLength,
			maxSecretLength)
	}
	return secure.Secret(secret), nil
}

// readLabel reads the issuer or the account name, which an authenticator app shows. Neither
// can be removed, nor contain a colon, which separates the two in the key URI.
func readLabel(in field.Text, name string, to **string) error {
	if !in.Present {
		return nil
	}
	text, err := field.Required(in, name, maxLabel)
	if err != nil {
		return err
	}
	if strings.Contains(text, ":") {
		return apierr.Invalid.Because("%s cannot contain a colon", name)
	}
	*to = &text
	return nil
}

// setQRCode sets the key URI of an authenticator and the QR code of that URI. It returns
// apierr.TooLong where issuer and account name do not fit into a QR code.
func setQRCode(f *store.Factor) error {
	uri := keyURI(*f)
	f.KeyURI = secure.Secret(uri)
	code, err := drawQRCode(uri)
	if err != nil {
		return apierr.TooLong.Because("issuer and accountName together are too long for a QR code")
	}
	f.Image = code
	return nil
}

// keyURI returns the otpauth URI of docs/interface/multi-factor.md#factors. That of
// pquerna/otp has more parameters, and needs an issuer.
func keyURI(f store.Factor) string {
	uri := percentEncode(*f.AccountName) + "?secret=" + f.Secret.Reveal()
	if f.Issuer != nil {
		issuer := percentEncode(*f.Issuer)
		uri = issuer + ":" + uri + "&issuer=" + issuer
	}
	return "otpauth://totp/" + uri
}

// percentEncode encodes a part of a URI, a space as %20.
func percentEncode(text string) string { return strings.ReplaceAll(url.QueryEscape(text), "+", "%20") }

// drawQRCode returns the QR code of a text as a PNG, with the quiet zone of four modules
// that scanners need and the image of pquerna/otp lacks.
func drawQRCode(text string) ([]byte, error) {
	const scale, quiet = 4, 4
	code, err := qr.Encode(text, qr.L, qr.Unicode)
	if err != nil {
		return nil, fmt.Errorf("draw a QR code: %w", err)
	}
	modules := code.Bounds().Dx()
	size := (modules + 2*quiet) * scale
	picture := image.NewPaletted(image.Rect(0, 0, size, size), color.Palette{color.White, color.Black})
	for y := range modules * scale {
		for x := range modules * scale {
			if code.At(x/scale, y/scale) == color.Black {
				picture.SetColorIndex(x+quiet*scale, y+quiet*scale, 1)
			}
		}
	}
	var out bytes.Buffer
	err = png.Encode(&out, picture)
	return out.Bytes(), err
}

// acceptedStep verifies a TOTP code (RFC 6238: SHA-1, 30 seconds, 6 digits). It returns the
// time step of the code, or 0 for a wrong code and for a code of the step last or an earlier
// step. The caller stores the step as last, so that a code is accepted once (replay). The
// library's totp.Validate does not return the step.
func acceptedStep(secret secure.Secret, code string, now time.Time, last int64) (accepted int64, err error) {
	current := now.Unix() / stepSeconds
	for step := current - clockSkewSteps; step <= current+clockSkewSteps; step++ {
		expected, err := verifyTOTP.GenerateCodeCustom(secret.Reveal(), uint64(step),
			verifyTOTP.ValidateOpts{Digits: otp.DigitsSix, Algorithm: otp.AlgorithmSHA1})
		if err != nil {
			return 0, fmt.Errorf("compute a one-time password: %w", err)
		}
		if subtle.ConstantTimeCompare([]byte(expected), []byte(code)) == 1 && step > last {
			accepted = step
		}
	}
	return accepted, nil
}
