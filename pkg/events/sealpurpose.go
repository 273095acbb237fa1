package events

import "github.com/doorward/doorward/pkg/id"

// MailTokenPurpose is what a mail token of an account is sealed for (see
// secure.Keyring): in its row, in the event that takes it to the mail, and in
// the delivery that waits for the mail server.
func MailTokenPurpose(account id.ID) string { return "mail.token/" + account.String() }

// CodePurpose is what the code of a challenge is sealed for in the event that
// takes it to the message.
func CodePurpose(challenge id.ID) string { return "mfa.code/" + challenge.String() }
