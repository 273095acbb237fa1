package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/valyala/fasthttp/fasthttputil"

	"github.com/doorward/doorward/deploy/mailbox"
	"github.com/doorward/doorward/pkg/run"
)

// startMailbox runs the development mail server on loopback and its pages on a
// listener in memory, from where the gateway shows them.
func startMailbox(p *run.Process, dir string) (pages *fasthttputil.InmemoryListener, url string, err error) {
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

	pages = fasthttputil.NewInmemoryListener()
	server := &http.Server{Handler: box.Handler(), ReadHeaderTimeout: 10 * time.Second}
	// A kept connection would hold up the stop: the listener in memory does not
	// wake a read that waits for the next request.
	server.SetKeepAlivesEnabled(false)
	p.Go("mailbox pages", func(context.Context) error {
		if err := server.Serve(pages); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	p.OnClose("mailbox pages", server.Shutdown)
	return pages, "smtp://" + smtp.Addr().String(), nil
}
