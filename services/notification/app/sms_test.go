package app

import (
	"strings"
	"testing"

	"github.com/doorward/doorward/services/notification"
)

func TestTheSMSProviderIsReadFromTheEnvironment(t *testing.T) {
	account := SMS{Provider: "twilio", Account: "AC1", Token: "geheim", From: "MG1"}
	at := func(address string) SMS {
		c := account
		c.Twilio = address
		return c
	}
	mailbox := func(address string) SMS { return SMS{Provider: "mailbox", Mailbox: address} }
	for name, c := range map[string]struct {
		in   SMS
		want notification.SMSProvider
		says string
	}{
		"none": {in: SMS{Provider: "none"}},
		"Twilio": {in: account,
			want: notification.SMSProvider{Address: "https://api.twilio.com", Account: "AC1", Token: "geheim", From: "MG1",
				Receipts: true}},
		"a server like it": {in: at("https://sms.example.test:8443/"),
			want: notification.SMSProvider{Address: "https://sms.example.test:8443", Account: "AC1", Token: "geheim",
				From: "MG1", Receipts: true}},
		"one on this machine": {in: at("http://127.0.0.1:1"),
			want: notification.SMSProvider{Address: "http://127.0.0.1:1", Account: "AC1", Token: "geheim", From: "MG1",
				Receipts: true}},
		"the mailbox": {in: mailbox("http://mailbox:8025"),
			want: notification.SMSProvider{Address: "http://mailbox:8025", Account: "mailbox", From: "Doorward"}},
		"a token in the clear":      {in: at("http://sms.example.test"), says: "DOORWARD_SMS_TWILIO_URL"},
		"a path":                    {in: at("https://sms.example.test/2010"), says: "DOORWARD_SMS_TWILIO_URL"},
		"a password in the address": {in: at("https://jo:geheim@sms.example.test"), says: "DOORWARD_SMS_TWILIO_URL"},
		"another scheme":            {in: mailbox("ftp://mailbox"), says: "DOORWARD_SMS_MAILBOX_URL"},
		"a mailbox without address": {in: mailbox(""), says: "DOORWARD_SMS_MAILBOX_URL"},
		"no account":                {in: SMS{Provider: "twilio", Token: "geheim", From: "MG1"}, says: "ACCOUNT_SID"},
		"no token":                  {in: SMS{Provider: "twilio", Account: "AC1", From: "MG1"}, says: "AUTH_TOKEN"},
		"no sender":                 {in: SMS{Provider: "twilio", Account: "AC1", Token: "geheim"}, says: "FROM"},
		"an account for nobody":     {in: SMS{Provider: "none", Account: "AC1"}, says: "is not twilio"},
		"a mailbox beside Twilio":   {in: SMS{Provider: "twilio", Mailbox: "http://mailbox"}, says: "is not mailbox"},
		"a pigeon":                  {in: SMS{Provider: "pigeon"}, says: "DOORWARD_SMS_PROVIDER"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := c.in.provider()
			if c.says == "" {
				if err != nil || got != c.want {
					t.Errorf("it is %+v, %v; want %+v", got, err, c.want)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "geheim") {
				t.Errorf("it says %v, want %s", err, c.says)
			}
		})
	}
}
