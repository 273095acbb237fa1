// Package app wires the agent: its configuration, status page and workers.
package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/doorward/doorward/pkg/run"
	"github.com/doorward/doorward/services/agent"
)

// Run is the agent as a process.
func Run(_ context.Context, p *run.Process, cfg agent.Config) error {
	a, err := agent.New(cfg)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", cfg.Listen)
	if err != nil {
		return fmt.Errorf("listen on DOORWARD_AGENT_LISTEN: %w", err)
	}
	slog.Info("status page listening", "address", "http://"+listener.Addr().String())
	page := &http.Server{Handler: a.Handler(), ReadHeaderTimeout: 5 * time.Second}
	p.Go("page", func(context.Context) error {
		if err := page.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	p.OnClose("page", page.Shutdown)
	p.Check("agent", a.Healthy)
	p.Go("agent", a.Run)
	return nil
}
