package harness

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
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
	port := FreePort()
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	if err := os.MkdirAll(config.path("redis"), 0o755); err != nil {
		return nil, "", fmt.Errorf("make the folder of Redis: %w", err)
	}
	server := NewDaemon("redis", config.path("redis.log"), func(ctx context.Context) error {
		return AskRedis(ctx, address, "PING", "+PONG")
	}, path, "--bind", "127.0.0.1", "--port", strconv.Itoa(port), "--save", "", "--appendonly", "no")
	server.dir = config.path("redis")
	return server, address, server.Start(ctx)
}

// AskRedis sends a command to a server without a password and wants an answer.
func AskRedis(ctx context.Context, address, command, want string) error {
	answer, err := askRedis(ctx, address, command)
	if err == nil && answer != want {
		err = fmt.Errorf("it answers %q", answer)
	}
	if err != nil {
		return fmt.Errorf("send %s to Redis: %w", command, err)
	}
	return nil
}

func askRedis(ctx context.Context, address, command string) (string, error) {
	dialer := net.Dialer{Timeout: time.Second}
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(time.Second)); err != nil {
		return "", err
	}
	if _, err := conn.Write([]byte(command + "\r\n")); err != nil {
		return "", err
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	return strings.TrimSpace(line), err
}
