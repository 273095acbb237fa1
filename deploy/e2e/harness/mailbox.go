package harness

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
)

// startMailbox starts the development mail server: what the service sends can
// be read at its page, which the gateway shows to the outside.
func startMailbox(ctx context.Context, config Config, smtp, page string) (*Daemon, error) {
	mailbox := &Daemon{
		Name: "mailbox",
		path: filepath.Join(config.Bin, "mailbox"),
		env: environment(
			"DOORWARD_MAILBOX_DIR="+config.path("mailbox"),
			"DOORWARD_MAILBOX_SMTP_LISTEN="+smtp,
			"DOORWARD_MAILBOX_HTTP_LISTEN="+page,
		),
		log:   config.path("mailbox.log"),
		ready: func(ctx context.Context) error { return AnswersOK(ctx, http.DefaultClient, "http://"+page+"/_mailbox") },
	}
	return mailbox, mailbox.Start(ctx)
}

// AnswersOK asks an address for a 200.
func AnswersOK(ctx context.Context, client *http.Client, address string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return fmt.Errorf("ask %s: %w", address, err)
	}
	response, err := client.Do(request)
	if err != nil {
		return fmt.Errorf("ask %s: %w", address, err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, 4096))
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("it answers %d %s", response.StatusCode, bytes.TrimSpace(body))
	}
	if err != nil {
		return fmt.Errorf("ask %s: %w", address, err)
	}
	return nil
}
