package app

import (
	"fmt"
	"regexp"
	"time"

	"github.com/doorward/doorward/pkg/deployment"
	"github.com/doorward/doorward/pkg/env"
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
	Database secure.Secret `env:"NOTIFICATION_DATABASE_URL,DATABASE_URL" required:"true" help:"PostgreSQL, postgres://user:password@host/db"`
	_        env.More      `help:"(several hosts as host1,host2; TLS by ?sslmode=verify-full)"`

	Directory   []string `env:"DOORWARD_DIRECTORY_URL" help:"comma-separated addresses of the directory service, http://host:port"`
	Application []string `env:"DOORWARD_APPLICATION_URL" help:"comma-separated addresses of the application service, http://host:port"`
	OAuth       []string `env:"DOORWARD_OAUTH_URL" help:"comma-separated addresses of the oauth service, http://host:port"`

	SMTP    secure.Secret `env:"DOORWARD_SMTP_URL" required:"true" help:"SMTP server that sends all mail, smtp://[user:password@]host:port"`
	_       env.More      `help:"(STARTTLS where it is offered) or smtps://"`
	Helo    string        `env:"DOORWARD_SMTP_HELO" help:"host name with which this deployment greets mail servers (EHLO), by default that"`
	_       env.More      `help:"of DOORWARD_BASE_URL"`
	Senders int           `env:"DOORWARD_MAIL_SENDERS" default:"4" min:"1" help:"mails that this process sends at once"`
	Timeout time.Duration `env:"DOORWARD_MAIL_TIMEOUT" default:"2m" help:"timeout of sending one mail"`

	SMS      SMS
	Outbound outbound.Config

	// LeaseTime replaces notification.Config.LeaseTime where it is not zero. It has no
	// environment variable: only tests set it.
	LeaseTime time.Duration
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
