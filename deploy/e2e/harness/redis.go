package harness

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"time"
)

// startRedis starts a real Redis server that keeps nothing on disk, as the
// product keeps nothing in it that may not be lost. It returns the server and
// its address.
func startRedis(ctx context.Context, config Config) (*Daemon, string, error) {
	path, err := exec.LookPath("redis-server")
	if err != nil {
		return nil, "", fmt.Errorf("%w; run deploy/setup/setup.sh redis, or set REDIS_URL", err)
	}
	address, err := FreeAddress()
	if err != nil {
		return nil, "", err
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, "", fmt.Errorf("read the address of Redis: %w", err)
	}
	if err := os.MkdirAll(config.path("redis"), 0o755); err != nil {
		return nil, "", fmt.Errorf("make the folder of Redis: %w", err)
	}
	server := &Daemon{
		Name:  "redis",
		path:  path,
		args:  []string{"--bind", host, "--port", port, "--save", "", "--appendonly", "no"},
		env:   environment(),
		dir:   config.path("redis"),
		log:   config.path("redis.log"),
		ready: func(ctx context.Context) error { return redisAnswers(ctx, address) },
	}
	return server, address, server.Start(ctx)
}

func redisAnswers(ctx context.Context, address string) error {
	dialer := net.Dialer{Timeout: time.Second}
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("dial Redis: %w", err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(time.Second)); err != nil {
		return fmt.Errorf("dial Redis: %w", err)
	}
	if _, err := conn.Write([]byte("PING\r\n")); err != nil {
		return fmt.Errorf("ping Redis: %w", err)
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		return fmt.Errorf("ping Redis: %w", err)
	}
	if strings.TrimSpace(line) != "+PONG" {
		return fmt.Errorf("ping Redis: it answered %q", strings.TrimSpace(line))
	}
	return nil
}
