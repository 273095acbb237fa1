package app

import (
	"context"

	"github.com/doorward/doorward/pkg/env"
	"github.com/doorward/doorward/pkg/events/outbox"
	"github.com/doorward/doorward/pkg/redisclient"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/notification"
)

// serversConfig is separate from doctorConfig, because standalone has such servers of its own.
type serversConfig struct {
	Redis redisclient.Config
	Kafka outbox.Config
	Mail  mailConfig
}

type mailConfig struct {
	SMTP secure.Secret `env:"DOORWARD_SMTP_URL" required:"true" help:"SMTP server that sends all mail, smtp://[user:password@]host:port"`
}

// servers are the servers that Doctor looks at. One that is nil is in the process of standalone itself.
type servers struct {
	redis *redisclient.Config
	kafka *outbox.Config
	mail  *mailConfig
}

// loadServers reads the addresses of the servers. Those that the environment does not name are, for a data folder,
// in the process that runs on it.
func loadServers(source *env.Source, inFolder bool) (s servers) {
	if !inFolder || source.Has("REDIS_URL") {
		s.redis = new(redisclient.Config)
		source.Load(s.redis)
	}
	if !inFolder || source.Has("KAFKA_BROKERS") {
		s.kafka = new(outbox.Config)
		source.Load(s.kafka)
	}
	if !inFolder || source.Has("DOORWARD_SMTP_URL") {
		s.mail = new(mailConfig)
		source.Load(s.mail)
	}
	return s
}

// servers checks Redis, Kafka and the mail server. What the configuration lacks was reported there.
func (d *doctor) servers(ctx context.Context, s servers, helo string) {
	const within = "the process has its own"
	switch {
	case s.redis == nil:
		d.add("redis", "ok", "", within)
	case s.redis.URL != "":
		d.withTimeout(ctx, func(ctx context.Context) { d.redis(ctx, *s.redis) })
	}
	switch {
	case s.kafka == nil:
		d.add("kafka", "failed", "see the log of the process", "the process has not started its broker")
	case len(s.kafka.Brokers) > 0:
		d.withTimeout(ctx, func(ctx context.Context) { d.kafka(ctx, *s.kafka) })
	}
	switch {
	case s.mail == nil:
		d.add("smtp", "ok", "", within+", the development mailbox")
	case s.mail.SMTP != "":
		d.withTimeout(ctx, func(ctx context.Context) { d.smtp(ctx, s.mail.SMTP, helo) })
	}
}

// smtp opens a session with the mail server: the connection, its encryption, and the login.
func (d *doctor) smtp(ctx context.Context, address secure.Secret, helo string) {
	server, err := notification.ParseMailServer(address)
	if err == nil {
		err = notification.CheckMailServer(ctx, server, helo, doctorTimeout)
	}
	if err != nil {
		d.add("smtp", "failed", "correct DOORWARD_SMTP_URL, or see what the mail server logs; until then mails wait: docs/runbooks/mails-wait.md",
			"%v", err)
		return
	}
	d.add("smtp", "ok", "", "answers")
}

func (d *doctor) redis(ctx context.Context, cfg redisclient.Config) {
	client, err := redisclient.Open(cfg)
	if err == nil {
		defer func() { _ = client.Close() }()
		err = client.Ping(ctx).Err()
	}
	if err != nil {
		d.add("redis", "failed", "start Redis, or correct REDIS_URL; until then each gateway applies the limits alone", "%v",
			err)
		return
	}
	d.add("redis", "ok", "", "answers")
}

func (d *doctor) kafka(ctx context.Context, cfg outbox.Config) {
	inspector, err := outbox.NewInspector(cfg)
	if err != nil {
		d.add("kafka", "failed", "correct the variables KAFKA_…", "%v", err)
		return
	}
	defer inspector.Close()
	letters, err := inspector.DeadLetters(ctx)
	if err != nil {
		d.add("kafka", "failed", "start the brokers, or correct the variables KAFKA_…; until then events wait in the outboxes", "%v", err)
		return
	}
	d.add("kafka", "ok", "", "answers")
	if len(letters) > 0 {
		d.add("dead letters", "failed",
			"doorward deadletters list, then retry or drop: docs/runbooks/dead-letters.md", "%d events could not be handled", len(letters))
	} else {
		d.add("dead letters", "ok", "", "none")
	}
	for _, service := range []string{"directory", "application", "oauth", "mfa", "notification", "idsite"} {
		lag, err := inspector.Lag(ctx, service)
		switch {
		case err != nil:
			d.add("lag "+service, "failed", "see what the brokers log", "%v", err)
		case lag > consumerLagHigh:
			d.add("lag "+service, "failed", "docs/runbooks/consumer-lag.md", "%d events are still to be handled", lag)
		default:
			d.add("lag "+service, "ok", "", "%d events are still to be handled", lag)
		}
	}
}
