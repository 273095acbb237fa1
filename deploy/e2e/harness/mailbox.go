package harness

import (
	"context"
	"net/http"
	"path/filepath"
)

// startMailbox starts the development mail server: what the service sends can
// be read at its page, which the gateway shows to the outside.
func startMailbox(ctx context.Context, config Config, smtp, page string) (*Daemon, error) {
	mailbox := NewDaemon("mailbox", config.path("mailbox.log"), func(ctx context.Context) error {
		return AnswersOK(ctx, http.DefaultClient, "http://"+page+"/_mailbox")
	}, filepath.Join(config.Bin, "mailbox"))
	mailbox.Setenv("DOORWARD_MAILBOX_DIR="+config.path("mailbox"),
		"DOORWARD_MAILBOX_SMTP_LISTEN="+smtp, "DOORWARD_MAILBOX_HTTP_LISTEN="+page)
	return mailbox, mailbox.Start(ctx)
}
