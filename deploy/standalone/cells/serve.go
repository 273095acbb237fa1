package cells

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"
)

const (
	maxHeader     = 64 << 10 // bytes of the headers of a request, which has no body
	headerTimeout = 10 * time.Second
	idleTimeout   = 2 * time.Minute
	drainTimeout  = 10 * time.Second
)

// Serve answers proxies at an address until ctx ends, and follows the events of the cells meanwhile.
func (d *Directory) Serve(ctx context.Context, listen string) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", listen)
	if err != nil {
		return err
	}
	followed := make(chan struct{})
	following, stop := context.WithCancel(ctx)
	defer func() {
		stop()
		<-followed
	}()
	go func() {
		defer close(followed)
		d.Follow(following)
	}()
	server := &http.Server{
		Handler: d, MaxHeaderBytes: maxHeader, ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout,
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	slog.InfoContext(ctx, "answering proxies", "address", listener.Addr().String(), "cells", len(d.cells))
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	draining, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
	defer cancel()
	err = server.Shutdown(draining)
	if errors.Is(err, context.DeadlineExceeded) {
		err = server.Close()
	}
	return err
}
