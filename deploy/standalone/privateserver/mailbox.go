package privateserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/doorward/doorward/deploy/mailbox"
	"github.com/doorward/doorward/pkg/run"
)

// MailboxAddresses are where the mailbox takes mails and text messages.
type MailboxAddresses struct{ SMTP, Texts string }

// StartMailbox runs the development mail server, and the intake of text
// messages, on loopback and serves its pages, which the gateway shows.
func StartMailbox(p *run.Process, dir string) (pages http.Handler, addresses MailboxAddresses, err error) {
	box, err := mailbox.Open(dir, mailbox.DefaultKeep, time.Now)
	if err != nil {
		return nil, addresses, fmt.Errorf("open the mailbox: %w", err)
	}
	smtp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, addresses, err
	}
	p.Go("mailbox SMTP", func(ctx context.Context) error { return box.ServeSMTP(ctx, smtp) })
	texts, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, addresses, err
	}
	server := &http.Server{Handler: box.Handler(), ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 30 * time.Second}
	p.Go("mailbox texts", func(context.Context) error {
		if err := server.Serve(texts); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	p.OnClose("mailbox texts", server.Shutdown)
	return box.Handler(), MailboxAddresses{SMTP: "smtp://" + smtp.Addr().String(),
		Texts: "http://" + texts.Addr().String()}, nil
}
