// Package redisclient opens a client of Redis. Redis stores nothing: by publish and subscribe (pub/sub)
// the gateways send each other messages (counters of rate limits, invalidations of API keys), which
// may be lost. All data that security depends on is in PostgreSQL.
package redisclient

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/extra/redisotel/v9"
	"github.com/redis/go-redis/v9"

	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/pkg/telemetry"
)

// commandTimeout bounds the dialing, the writing and the reading of each command.
const commandTimeout = time.Second

// Config says where Redis is.
type Config struct {
	URL secure.Secret `env:"REDIS_URL" required:"true"`
	CA  string        `env:"REDIS_CA"`
}

// Help has the help texts that are longer than a line.
func (Config) Help() map[string]string {
	return map[string]string{
		"REDIS_URL": "address of Redis, redis://[user:password@]host:port; " +
			"redis+sentinel://host:port,host:port/master or redis+cluster://host:port,host:port; rediss for TLS",
		"REDIS_CA": "CA certificates in PEM to verify Redis with, instead of those of the system",
	}
}

// Client is a connection pool to one Redis, a Sentinel group or a Cluster.
type Client = redis.UniversalClient

func init() { redis.SetLogger(silence{}) }

// silence drops the log of go-redis: the callers get the same failures as errors.
type silence struct{}

func (silence) Printf(context.Context, string, ...any) {}

// Open makes the client. It does not connect: the callers work while Redis is unavailable.
func Open(cfg Config) (Client, error) {
	options, err := cfg.options()
	if err != nil {
		return nil, err
	}
	client := redis.NewUniversalClient(options)
	if telemetry.Recording() {
		if err := redisotel.InstrumentTracing(client, redisotel.WithDBStatement(false)); err != nil {
			return nil, err
		}
	}
	return client, nil
}

var errAddress = errors.New("REDIS_URL has none of the forms redis://[user:password@]host:port, " +
	"redis+sentinel://host:port,host:port/master and redis+cluster://host:port,host:port, nor one of those with rediss")

// options parses REDIS_URL: a scheme, a user and password of Redis, the nodes, a path, which is a
// Sentinel group or the number of a database, and parameters: sentinel_username,
// sentinel_password, and with the scheme redis also master_name (a Sentinel group) and addr (a
// further node). Its errors do not contain the password.
func (cfg Config) options() (*redis.UniversalOptions, error) {
	scheme, rest, ok := strings.Cut(cfg.URL.Reveal(), "://")
	if !ok {
		return nil, errAddress
	}
	rest, parameters, _ := strings.Cut(rest, "?")
	rest, path, _ := strings.Cut(rest, "/")
	at := strings.LastIndexByte(rest, '@')
	user, err := url.Parse("redis://" + rest[:at+1] + "host")
	if err != nil {
		return nil, errAddress
	}
	query, err := url.ParseQuery(parameters)
	if err != nil {
		return nil, errAddress
	}
	password, _ := user.User.Password()
	o := &redis.UniversalOptions{
		Username: user.User.Username(), Password: password,
		SentinelUsername: query.Get("sentinel_username"), SentinelPassword: query.Get("sentinel_password"),
		MasterName:  query.Get("master_name"),
		DialTimeout: commandTimeout, ReadTimeout: commandTimeout, WriteTimeout: commandTimeout, MaxRetries: 1,
	}
	for name := range query {
		if !slices.Contains([]string{"sentinel_username", "sentinel_password", "master_name", "addr"}, name) {
			return nil, fmt.Errorf("REDIS_URL: the parameter %q is unknown", name)
		}
	}
	protocol, kind, _ := strings.Cut(scheme, "+")
	port := "6379"
	switch kind {
	case "sentinel":
		o.MasterName, path, _ = strings.Cut(path, "/")
		if o.MasterName == "" {
			return nil, errors.New(
				"REDIS_URL lacks the name of the Sentinel group: redis+sentinel://host:port,host:port/master")
		}
		port = "26379"
	case "cluster":
		o.IsClusterMode = true
	case "":
		o.IsClusterMode = query.Has("addr") && o.MasterName == ""
	default:
		return nil, errAddress
	}
	for _, text := range append(strings.Split(rest[at+1:], ","), query["addr"]...) {
		address, err := node(text, port)
		if err != nil {
			return nil, err
		}
		o.Addrs = append(o.Addrs, address)
	}
	if len(o.Addrs) > 1 && kind == "" && !query.Has("addr") {
		return nil, errors.New("REDIS_URL names several hosts: use redis+cluster:// or redis+sentinel://")
	}
	if path != "" {
		if o.DB, err = strconv.Atoi(path); err != nil || o.IsClusterMode && o.DB != 0 {
			return nil, errAddress
		}
	}
	switch protocol {
	case "redis":
	case "rediss":
		// Without a ServerName the host name of each node is verified.
		o.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12}
		if o.TLSConfig.RootCAs, err = secure.Authorities(cfg.CA); err != nil {
			return nil, fmt.Errorf("REDIS_CA: %w", err)
		}
	default:
		return nil, errAddress
	}
	return o, nil
}

// node returns the address of a node, with the default port where it has none.
func node(text, port string) (string, error) {
	parsed, err := url.Parse("redis://" + text)
	if err != nil || parsed.Host != text || parsed.Hostname() == "" {
		return "", errAddress
	}
	if given := parsed.Port(); given != "" {
		port = given
	}
	return net.JoinHostPort(parsed.Hostname(), port), nil
}
