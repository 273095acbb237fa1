package app

import (
	"errors"
	"fmt"

	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/notification"
)

// twilioURL is the address of Twilio's API.
const twilioURL = "https://api.twilio.com"

// SMS is the part of the environment that configures the SMS provider. The requests to it
// are in ../smsprovider.go.
type SMS struct {
	Provider string        `env:"DOORWARD_SMS_PROVIDER" default:"none"`
	Senders  int           `env:"DOORWARD_SMS_SENDERS" default:"4" min:"1"`
	Mailbox  string        `env:"DOORWARD_SMS_MAILBOX_URL" help:"for mailbox: its address, http://host:port"`
	Account  string        `env:"DOORWARD_SMS_TWILIO_ACCOUNT_SID" help:"for twilio: SID of the account"`
	Token    secure.Secret `env:"DOORWARD_SMS_TWILIO_AUTH_TOKEN"`
	From     string        `env:"DOORWARD_SMS_TWILIO_FROM"`
	Twilio   string        `env:"DOORWARD_SMS_TWILIO_URL"`
}

// Help has the help texts that are longer than a line.
func (SMS) Help() map[string]string {
	return map[string]string{
		"DOORWARD_SMS_PROVIDER": "provider of text messages: twilio, mailbox (which shows them to a developer), or " +
			"none, so that a challenge by SMS ends as ERROR",
		"DOORWARD_SMS_SENDERS":           "text messages that this process sends at once",
		"DOORWARD_SMS_TWILIO_AUTH_TOKEN": "for twilio: token of the account; it signs the delivery receipts too",
		"DOORWARD_SMS_TWILIO_FROM": "for twilio: the sender of texts: a number in E.164, or the SID (MG...) of a " +
			"messaging service",
		"DOORWARD_SMS_TWILIO_URL": "for twilio: address of a server that speaks the same API " +
			"(https://api.twilio.com)",
	}
}

// provider returns the SMS provider of the configuration. It refuses variables of another
// provider than the chosen one, because they would have no effect.
func (c SMS) provider() (p notification.SMSProvider, err error) {
	isTwilio := c.Account != "" || c.Token != "" || c.From != "" || c.Twilio != ""
	switch {
	case isTwilio && c.Provider != "twilio":
		return p, errors.New("DOORWARD_SMS_TWILIO_* is given, but DOORWARD_SMS_PROVIDER is not twilio")
	case c.Mailbox != "" && c.Provider != "mailbox":
		return p, errors.New("DOORWARD_SMS_MAILBOX_URL is given, but DOORWARD_SMS_PROVIDER is not mailbox")
	}
	switch c.Provider {
	case "none":
		return p, nil
	case "mailbox":
		if p.Address, err = notification.ParseSMSProviderAddress(c.Mailbox, true); err != nil {
			return p, fmt.Errorf("DOORWARD_SMS_MAILBOX_URL is %w", err)
		}
		p.Account, p.From = "mailbox", "Doorward"
		return p, nil
	case "twilio":
		return c.twilioProvider()
	}
	return p, errors.New("DOORWARD_SMS_PROVIDER must be twilio, mailbox or none")
}

// twilioProvider returns the provider for an account of Twilio, or of a server that has the
// same API.
func (c SMS) twilioProvider() (p notification.SMSProvider, err error) {
	for _, needed := range []struct{ name, value string }{
		{"ACCOUNT_SID", c.Account}, {"AUTH_TOKEN", c.Token.Reveal()}, {"FROM", c.From},
	} {
		if needed.value == "" {
			return p, fmt.Errorf("DOORWARD_SMS_TWILIO_%s is missing, which DOORWARD_SMS_PROVIDER=twilio needs",
				needed.name)
		}
	}
	address := c.Twilio
	if address == "" {
		address = twilioURL
	}
	if address, err = notification.ParseSMSProviderAddress(address, false); err != nil {
		return p, fmt.Errorf("DOORWARD_SMS_TWILIO_URL is %w", err)
	}
	return notification.SMSProvider{Address: address, Account: c.Account, Token: c.Token, From: c.From, Receipts: true},
		nil
}
