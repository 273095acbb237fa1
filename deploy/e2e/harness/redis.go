package harness

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"

	"github.com/doorward/doorward/pkg/redisclient"
	"github.com/doorward/doorward/pkg/secure"
)

// startRedis starts a real Redis server without persistence, because the product stores
// nothing in Redis that may not be lost. It returns the server and
// its address.
func startRedis(ctx context.Context, config Config) (*Daemon, string, error) {
	path, err := Program("redis-server", "redis")
	if err != nil {
		return nil, "", fmt.Errorf("%w, or set REDIS_URL", err)
	}
	port := FreePort()
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	if err := os.MkdirAll(config.path("redis"), 0o755); err != nil {
		return nil, "", fmt.Errorf("make the folder of Redis: %w", err)
	}
	server := NewDaemon("redis", config.path("redis.log"), func(ctx context.Context) error {
		return InRedis(address, func(client redisclient.Client) error { return client.Ping(ctx).Err() })
	}, path, "--bind", "127.0.0.1", "--port", strconv.Itoa(port), "--save", "", "--appendonly", "no")
	server.dir = config.path("redis")
	return server, address, server.Start(ctx)
}

// InRedis calls do with a connection of its own to a server without a password.
func InRedis(address string, do func(redisclient.Client) error) error {
	client, err := redisclient.Open(redisclient.Config{URL: secure.Secret("redis://" + address)})
	if err != nil {
		return err
	}
	return errors.Join(do(client), client.Close())
}
