package main

import (
	"slices"
	"strings"

	"github.com/doorward/doorward/pkg/env"
)

// settings are the environment variables of the mailbox.
type settings struct {
	Dir        string   `env:"DOORWARD_MAILBOX_DIR" default:".doorward/mailbox" help:"folder that keeps the messages"`
	SMTPListen string   `env:"DOORWARD_MAILBOX_SMTP_LISTEN" default:"localhost:2525" help:"address that accepts mail; port 0 takes a free one"`
	HTTPListen string   `env:"DOORWARD_MAILBOX_HTTP_LISTEN" default:"localhost:8025" help:"address of the page /_mailbox, and of text"`
	_          env.More `help:"messages; port 0 takes a free one"`
	Keep       int      `env:"DOORWARD_MAILBOX_KEEP" default:"10000" min:"1" help:"how many messages are kept; the oldest are removed"`
}

// mailboxVariables returns the variables of the environment that are meant for this
// process. The mailbox shares a file of variables with the services, whose names are not
// errors here; DOORWARD_MAILBOX_URL is a variable of the gateway.
func mailboxVariables(environment []string) *env.Source {
	return env.New(slices.DeleteFunc(slices.Clone(environment), func(line string) bool {
		return !strings.HasPrefix(line, "DOORWARD_MAILBOX_") || strings.HasPrefix(line, "DOORWARD_MAILBOX_URL=")
	}))
}
