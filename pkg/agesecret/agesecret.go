// Package agesecret encrypts a secret that is shown to an operator for a public key of age
// (https://age-encryption.org), so that no terminal, log or answer has it in clear.
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

// Shown is a secret as an operator is shown it: in clear, or encrypted for the recipients that the operator has named.
type Shown struct {
	Secret string `json:"secret,omitempty"`
	Sealed string `json:"sealed,omitempty"`
}

// Show returns a secret as it is shown.
func Show(secret secure.Secret, recipients []age.Recipient) (shown Shown, err error) {
	if len(recipients) == 0 {
		return Shown{Secret: secret.Reveal()}, nil
	}
	shown.Sealed, err = Seal(secret, recipients...)
	return shown, err
}

// APIKey is a new API key as an operator is shown it, this once.
type APIKey struct {
	ID string `json:"id"`
	Shown
}

// ShowAPIKey returns a new API key as it is shown.
func ShowAPIKey(key string, secret secure.Secret, recipients []age.Recipient) (APIKey, error) {
	shown, err := Show(secret, recipients)
	return APIKey{key, shown}, err
}
