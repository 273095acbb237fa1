package deployment

import (
	"fmt"
	"net/mail"
)

// Sender is the From address of the mails of the deployment. The notification service sends mails
// with it, and the directory service shows it in email templates.
type Sender struct {
	Address string `env:"DOORWARD_MAIL_FROM"`
	Name    string `env:"DOORWARD_MAIL_FROM_NAME"`
}

// Help has the help texts that are longer than a line.
func (Sender) Help() map[string]string {
	return map[string]string{
		"DOORWARD_MAIL_FROM":      "address that mails come from; absent: no-reply@ and the host of DOORWARD_BASE_URL",
		"DOORWARD_MAIL_FROM_NAME": "name that mails come from; absent: Doorward, or DOORWARD_ALIAS as a name",
	}
}

// Open validates the sender, and sets the defaults.
func (s Sender) Open(common Common) (mail.Address, error) {
	address := s.Address
	if address == "" {
		address = "no-reply@" + common.Base.Hostname()
	}
	from, err := mail.ParseAddress(address)
	if err != nil || from.Name != "" {
		return mail.Address{}, fmt.Errorf(
			"DOORWARD_MAIL_FROM must be an email address such as no-reply@example.com; %q is none", address)
	}
	if from.Name = s.Name; from.Name == "" {
		from.Name = common.Alias.Product()
	}
	return *from, nil
}
