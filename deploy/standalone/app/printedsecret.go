package app

import (
	"filippo.io/age"

	"github.com/doorward/doorward/pkg/agesecret"
	"github.com/doorward/doorward/pkg/env"
)

// SecretRecipients reads --recipient of a command that prints a secret: the public keys of age that it is encrypted for,
// or none. On Kubernetes one is needed, because the log of a Pod keeps what the command prints.
func SecretRecipients(source *env.Source, text string) ([]age.Recipient, error) {
	if text == "" && source.Has("KUBERNETES_SERVICE_HOST") {
		return nil, UsageError("--recipient is needed on Kubernetes, whose logs keep what a command prints: " +
			"name your public key of age, such as age1…; doorward tenant key makes one on your own machine")
	}
	if text == "" {
		return nil, nil
	}
	return parseRecipients(text)
}

// parseRecipients reads public keys of age.
func parseRecipients(text string) ([]age.Recipient, error) {
	recipients, err := agesecret.Recipients(text)
	if err != nil {
		return nil, UsageError(err.Error())
	}
	return recipients, nil
}
