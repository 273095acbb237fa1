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

// addresses are where the mailbox takes messages.
type addresses struct{ smtp, texts string }

// startMailbox runs the development mail server, and the intake of text
// messages, on loopback and its pages on a listener in memory, from where the
// gateway shows them.
func startMailbox(p *run.Process, dir string) (pages *fasthttputil.InmemoryListener, at addresses, err error) {
	box, err := mailbox.Open(dir)
	if err != nil {
		return nil, at, fmt.Errorf("open the mailbox: %w", err)
	}
	smtp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, at, err
	}
	p.Go("mailbox SMTP", func(context.Context) error { return box.ServeSMTP(smtp) })
	p.OnClose("mailbox", box.Close)
	texts, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, at, err
	}
	serveMailbox(p, "mailbox texts", texts, box.Intake())
	pages = fasthttputil.NewInmemoryListener()
	serveMailbox(p, "mailbox pages", pages, box.Handler())
	return pages, addresses{smtp: "smtp://" + smtp.Addr().String(), texts: "http://" + texts.Addr().String()}, nil
}

// serveMailbox serves a part of the mailbox. A kept connection would hold up the
// stop: a listener in memory does not wake a read that waits for the next
// request.
func serveMailbox(p *run.Process, name string, listener net.Listener, handler http.Handler) {
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 30 * time.Second}
	server.SetKeepAlivesEnabled(false)
	p.Go(name, func(context.Context) error {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	p.OnClose(name, server.Shutdown)
}
