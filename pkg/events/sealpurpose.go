package events

import "github.com/doorward/doorward/pkg/id"

// MailTokenPurpose is the purpose for which a mail token of an account is sealed (encrypted; see
// secure.Keyring): in its row, in the event that requests the mail, and in the delivery that waits
// for the mail server.
func MailTokenPurpose(account id.ID) string { return "mail.token/" + account.String() }

// CodePurpose is the purpose for which the code of a challenge is sealed in the event that requests
// the text message.
func CodePurpose(challenge id.ID) string { return "mfa.code/" + challenge.String() }
