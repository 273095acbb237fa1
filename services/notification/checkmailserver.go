package notification

import (
	"context"
	"net"
	"time"

	"github.com/doorward/doorward/pkg/outbound"
)

// CheckMailServer opens an SMTP session with a mail server of the deployment as the sender of mails does, greeting
// it with the name helo, and closes it again. It sends no mail.
func CheckMailServer(ctx context.Context, server MailServer, helo string, timeout time.Duration) error {
	client, err := newSMTPClient(server, &net.Dialer{}, outbound.Guard{}, timeout, helo)
	if err != nil {
		return err
	}
	if err := client.Dial(ctx); err != nil {
		return err
	}
	client.Close()
	return nil
}
