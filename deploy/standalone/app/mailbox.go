package app

import (
	"context"
	"fmt"
	"net"
	"net/http"

	"github.com/doorward/doorward/deploy/mailbox"
	"github.com/doorward/doorward/pkg/run"
)

// startMailbox runs the development mail server on loopback and gives its
// pages, which the gateway shows.
func startMailbox(p *run.Process, dir string) (pages http.Handler, url string, err error) {
	box, err := mailbox.Open(dir)
	if err != nil {
		return nil, "", fmt.Errorf("open the mailbox: %w", err)
	}
	smtp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, "", err
	}
	p.Go("mailbox SMTP", func(context.Context) error { return box.ServeSMTP(smtp) })
	p.OnClose("mailbox", box.Close)

	return box.Handler(), "smtp://" + smtp.Addr().String(), nil
}
