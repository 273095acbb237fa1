package app

import (
	"fmt"
	"regexp"
	"time"

	"github.com/doorward/doorward/pkg/deployment"
	"github.com/doorward/doorward/pkg/events/outbox"
	"github.com/doorward/doorward/pkg/outbound"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/pkg/service"
	"github.com/doorward/doorward/services/notification"
)

// Config is the service's environment.
type Config struct {
	service.Config
	Sender   deployment.Sender
	Events   outbox.Config
	Database secure.Secret `env:"NOTIFICATION_DATABASE_URL,DATABASE_URL" required:"true"`

	Directory   []string `env:"DOORWARD_DIRECTORY_URL"`
	Application []string `env:"DOORWARD_APPLICATION_URL"`
	OAuth       []string `env:"DOORWARD_OAUTH_URL"`

	SMTP    secure.Secret `env:"DOORWARD_SMTP_URL" required:"true"`
	Helo    string        `env:"DOORWARD_SMTP_HELO"`
	Senders int           `env:"DOORWARD_MAIL_SENDERS" default:"4" min:"1" help:"mails that this process sends at once"`
	Timeout time.Duration `env:"DOORWARD_MAIL_TIMEOUT" default:"2m" help:"timeout of sending one mail"`

	SMS      SMS
	Outbound outbound.Config

	// LeaseTime replaces notification.Config.LeaseTime where it is not zero. It has no
	// environment variable: only tests set it.
	LeaseTime time.Duration
}

// Help has the help texts that are longer than a line.
func (Config) Help() map[string]string {
	return map[string]string{
		"NOTIFICATION_DATABASE_URL": "PostgreSQL, postgres://user:password@host/db (several hosts as host1,host2; " +
			"TLS by ?sslmode=verify-full)",
		"DOORWARD_DIRECTORY_URL":   "comma-separated addresses of the directory service, http://host:port",
		"DOORWARD_APPLICATION_URL": "comma-separated addresses of the application service, http://host:port",
		"DOORWARD_OAUTH_URL":       "comma-separated addresses of the oauth service, http://host:port",
		"DOORWARD_SMTP_URL": "SMTP server that sends all mail, smtp://[user:password@]host:port (STARTTLS where it " +
			"is offered) or smtps://",
		"DOORWARD_SMTP_HELO": "host name with which this deployment greets mail servers (EHLO), by default that of " +
			"DOORWARD_BASE_URL",
	}
}

// hostName matches a host name in ASCII, or an IP address.
var hostName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9.:-]{0,253}[A-Za-z0-9])?$`)

// sending returns the part of the configuration that says through what mails and text
// messages are sent.
func (c Config) sending(common deployment.Common) (cfg notification.Config, err error) {
	if cfg.MailServer, err = notification.ParseMailServer(c.SMTP); err != nil {
		return cfg, fmt.Errorf("DOORWARD_SMTP_URL is %w", err)
	}
	if cfg.From, err = c.Sender.Open(common); err != nil {
		return cfg, err
	}
	cfg.FromNamed = c.Sender.Name != ""
	if cfg.HeloName = c.Helo; cfg.HeloName != "" && !hostName.MatchString(cfg.HeloName) {
		return cfg, fmt.Errorf("DOORWARD_SMTP_HELO is %q, which is not a host name", c.Helo)
	}
	if c.Timeout <= 0 {
		return cfg, fmt.Errorf("DOORWARD_MAIL_TIMEOUT must be longer than nothing")
	}
	if cfg.Outbound, err = c.Outbound.Open(); err != nil {
		return cfg, err
	}
	if cfg.SMSProvider, err = c.SMS.provider(); err != nil {
		return cfg, err
	}
	cfg.Senders, cfg.Timeout, cfg.SMSSenders = c.Senders, c.Timeout, c.SMS.Senders
	cfg.LeaseTime = c.LeaseTime
	return cfg, nil
}
