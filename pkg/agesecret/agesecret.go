// Package agesecret encrypts a secret that is shown to an operator for a public key of age (https://age-encryption.org), so
// that no terminal, log or answer has it in clear.
package agesecret

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"filippo.io/age"
	"filippo.io/age/armor"

	"github.com/doorward/doorward/pkg/secure"
)

// ErrRecipient is in the error of a text that is no public key of age.
var ErrRecipient = errors.New("the recipient is no public key of age, such as age1…; doorward tenant key makes one")

// Recipients reads public keys of age, one a line. It returns ErrRecipient.
func Recipients(text string) ([]age.Recipient, error) {
	recipients, err := age.ParseRecipients(strings.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRecipient, err)
	}
	return recipients, nil
}

// Seal encrypts a secret for the recipients, as text in age's armor (PEM).
func Seal(secret secure.Secret, recipients ...age.Recipient) (string, error) {
	var text bytes.Buffer
	armored := armor.NewWriter(&text)
	encrypted, err := age.Encrypt(armored, recipients...)
	if err != nil {
		return "", err
	}
	_, err = io.WriteString(encrypted, secret.Reveal())
	err = errors.Join(err, encrypted.Close(), armored.Close())
	return text.String(), err
}
