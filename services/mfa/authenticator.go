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
	"github.com/pquerna/otp/hotp"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/reseal"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/mfa/store"
)

const (
	secretBytes = 20 // as RFC 4226, section 4, recommends for SHA-1
	stepSeconds = 30 // length of a time step
	skew        = 1  // steps by which the clock of an authenticator may differ
	maxLabel    = 255
)

// secretPurpose is what the secret of a factor is sealed for.
func secretPurpose(factor id.ID) string { return "mfa.factor/" + factor.String() }

// Sealed are the columns of values that are sealed under the master key for
// longer than a challenge is open.
var Sealed = []reseal.Column[id.ID]{{Table: "factors", Key: "id", Column: "secret_sealed", Purpose: secretPurpose}}

// newSecret draws the secret of an authenticator.
func newSecret() secure.Secret {
	secret := make([]byte, secretBytes)
	_, _ = rand.Read(secret)
	return secure.Secret(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(secret))
}

// label reads a name that an authenticator shows: absent leaves it, and it
// cannot be taken away. A colon parts the two names in the URI.
func label(in field.Text, name string, to **string) error {
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

// picture fills in what takes an authenticator's secret to the application: its
// URI and the image of that. Names that no QR code can hold are apierr.TooLong.
func picture(f *store.Factor) error {
	uri := keyURI(*f)
	f.KeyURI = secure.Secret(uri)
	drawn, err := draw(uri)
	if err != nil {
		return apierr.TooLong.Because("issuer and accountName together are too long for a QR code")
	}
	f.Image = drawn
	return nil
}

// keyURI is the address that authenticators read (resolutions, section 10.2).
func keyURI(f store.Factor) string {
	uri := component(*f.AccountName) + "?secret=" + f.Secret.Reveal()
	if f.Issuer != nil {
		issuer := component(*f.Issuer)
		uri = issuer + ":" + uri + "&issuer=" + issuer
	}
	return "otpauth://totp/" + uri
}

// component percent-encodes a part of a URI.
func component(text string) string { return strings.ReplaceAll(url.QueryEscape(text), "+", "%20") }

// draw makes the QR code of a text, with the quiet zone of four modules that
// scanners need.
func draw(text string) ([]byte, error) {
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

// acceptedStep gives the time step, later than last, whose code (RFC 6238:
// SHA-1, 30 seconds, 6 digits) is the given one, or 0 when there is none. Who
// stores it as the next last lets each code be accepted once.
func acceptedStep(secret secure.Secret, code string, now time.Time, last int64) (accepted int64, err error) {
	current := now.Unix() / stepSeconds
	for step := current - skew; step <= current+skew; step++ {
		right, err := hotp.GenerateCodeCustom(secret.Reveal(), uint64(step), hotp.ValidateOpts{Digits: otp.DigitsSix, Algorithm: otp.AlgorithmSHA1})
		if err != nil {
			return 0, fmt.Errorf("compute a one-time password: %w", err)
		}
		if subtle.ConstantTimeCompare([]byte(right), []byte(code)) == 1 && step > last {
			accepted = step
		}
	}
	return accepted, nil
}
