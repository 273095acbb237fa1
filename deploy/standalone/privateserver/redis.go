package privateserver

import (
	"context"
	"fmt"

	"github.com/alicebob/miniredis/v2"

	"github.com/doorward/doorward/pkg/run"
	"github.com/doorward/doorward/pkg/secure"
)

// StartRedis runs an embedded server of the Redis protocol on loopback, which requires the
// password. Doorward only publishes and subscribes and keeps no key in Redis, so nothing
// moves this server's clock, by which keys would expire.
func StartRedis(p *run.Process, password secure.Secret) (url string, err error) {
	server := miniredis.NewMiniRedis()
	server.RequireAuth(password.Reveal())
	if err := server.StartAddr("127.0.0.1:0"); err != nil {
		return "", fmt.Errorf("start the embedded Redis: %w", err)
	}
	p.OnClose("embedded Redis", func(context.Context) error {
		server.Close()
		return nil
	})
	return "redis://:" + password.Reveal() + "@" + server.Addr(), nil
}
