package app

import (
	"context"
	"fmt"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/doorward/doorward/pkg/run"
	"github.com/doorward/doorward/pkg/secure"
)

// startRedis runs an embedded server of the Redis protocol on loopback, which requires
// the password. Its keys expire when its clock is moved on, which happens every second.
func startRedis(p *run.Process, password secure.Secret) (url string, err error) {
	server := miniredis.NewMiniRedis()
	server.RequireAuth(password.Reveal())
	if err := server.StartAddr("127.0.0.1:0"); err != nil {
		return "", fmt.Errorf("start the embedded Redis: %w", err)
	}
	p.OnClose("embedded Redis", func(context.Context) error {
		server.Close()
		return nil
	})
	p.Go("clock of the embedded Redis", func(ctx context.Context) error {
		ticker := time.NewTicker(time.Second)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-ticker.C:
				server.FastForward(time.Second)
			}
		}
	})
	return "redis://:" + password.Reveal() + "@" + server.Addr(), nil
}
