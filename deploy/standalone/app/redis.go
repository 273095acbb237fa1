package app

import (
	"context"
	"fmt"

	"github.com/alicebob/miniredis/v2"

	"github.com/doorward/doorward/pkg/run"
	"github.com/doorward/doorward/pkg/secure"
)

// startRedis runs an embedded server of the Redis protocol on loopback, for its
// publish and subscribe: no key is kept in it, so its clock, which expires keys,
// stands still. It asks for the password.
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
	return "redis://:" + password.Reveal() + "@" + server.Addr(), nil
}
