// Package kv opens Redis. Redis holds only what may be lost: limits, caches
// and their invalidation. What guards security is in PostgreSQL.
package kv

import (
	"context"
	"errors"
	"net/url"
	"time"

	"github.com/redis/go-redis/extra/redisotel/v9"
	"github.com/redis/go-redis/v9"

	"github.com/doorward/doorward/pkg/env"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/pkg/telemetry"
)

// commandTimeout bounds each step of a command, so that a Redis that hangs holds
// nobody up for long.
const commandTimeout = time.Second

// Config says where Redis is.
type Config struct {
	URL secure.Secret `env:"REDIS_URL" required:"true" help:"address of Redis, redis://[:password@]host:port; parameters addr=host:port"`
	_   env.More      `help:"name further nodes of a cluster, master_name a Sentinel group"`
}

// Client is a connection pool to one Redis, a Sentinel group or a Cluster.
type Client = redis.UniversalClient

func init() { redis.SetLogger(silence{}) }

// silence drops what the client would print by itself: its users get the same
// as errors, and say what it means.
type silence struct{}

func (silence) Printf(context.Context, string, ...any) {}

// Open makes the client. It does not wait for Redis: its users work without it.
func Open(cfg Config) (Client, error) {
	client, err := dial(cfg.URL.Reveal())
	if err != nil {
		return nil, errors.New("REDIS_URL has not the form redis://[:password@]host:port")
	}
	if telemetry.Recording() {
		if err := redisotel.InstrumentTracing(client, redisotel.WithDBStatement(false)); err != nil {
			return nil, err
		}
	}
	return client, nil
}

// dial reads the address: addr parameters name the nodes of a cluster,
// master_name a group that Sentinel watches.
func dial(address string) (Client, error) {
	parsed, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	switch query := parsed.Query(); {
	case query.Has("master_name"):
		options, err := redis.ParseFailoverURL(address)
		if err != nil {
			return nil, err
		}
		options.DialTimeout, options.ReadTimeout, options.WriteTimeout, options.MaxRetries = commandTimeout, commandTimeout, commandTimeout, 1
		return redis.NewFailoverClient(options), nil
	case query.Has("addr"):
		options, err := redis.ParseClusterURL(address)
		if err != nil {
			return nil, err
		}
		options.DialTimeout, options.ReadTimeout, options.WriteTimeout, options.MaxRetries = commandTimeout, commandTimeout, commandTimeout, 1
		return redis.NewClusterClient(options), nil
	}
	options, err := redis.ParseURL(address)
	if err != nil {
		return nil, err
	}
	options.DialTimeout, options.ReadTimeout, options.WriteTimeout, options.MaxRetries = commandTimeout, commandTimeout, commandTimeout, 1
	return redis.NewClient(options), nil
}
