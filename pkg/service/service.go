// Package service opens what every service needs: the configuration of the deployment, the master
// key, the database and the HTTP application; it runs workers, and a service in a process of its own
// (Main).
package service

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync/atomic"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/certificate"
	"github.com/doorward/doorward/pkg/deployment"
	"github.com/doorward/doorward/pkg/env"
	"github.com/doorward/doorward/pkg/events"
	"github.com/doorward/doorward/pkg/events/outbox"
	"github.com/doorward/doorward/pkg/formeraddress"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/reseal"
	"github.com/doorward/doorward/pkg/rest"
	"github.com/doorward/doorward/pkg/run"
	"github.com/doorward/doorward/pkg/secure"
)

// Config is the environment that all services share.
type Config struct {
	deployment.Config
	MasterKey secure.Secret `env:"DOORWARD_MASTER_KEY" required:"true"`
	PoolSize  int           `env:"DOORWARD_DATABASE_POOL_SIZE" default:"8" min:"4"`
	TLS       TLS
}

// Help has the help texts that are longer than a line.
func (Config) Help() map[string]string {
	return map[string]string{
		"DOORWARD_MASTER_KEY": "master keys that encrypt secrets at rest, <id>:<base64 of 32 bytes>, the newest " +
			"first; make one with: echo k1:$(openssl rand -base64 32)",
		"DOORWARD_DATABASE_POOL_SIZE": "connections to PostgreSQL that requests share; a service opens two more: " +
			"for notifications, and to check that it can write",
	}
}

// TLS is the certificate of a service in a process of its own.
type TLS struct {
	Certificate string        `env:"DOORWARD_INTERNAL_TLS_CERT"`
	Key         secure.Secret `env:"DOORWARD_INTERNAL_TLS_KEY" help:"private key of that certificate in PEM"`
	Reload      env.Reload
}

// Help has the help texts that are longer than a line.
func (TLS) Help() map[string]string {
	return map[string]string{
		"DOORWARD_INTERNAL_TLS_CERT": "certificate chain in PEM of the service's address, whose callers then use " +
			"https://; renewed files are used within a minute; without one the service speaks plain HTTP",
	}
}

func (c TLS) read() (certificate.Pair, error) {
	var again TLS
	err := c.Reload(&again)
	return certificate.Pair{Chain: again.Certificate, Key: again.Key}, err
}

// Service has what every service needs, while its app wires the service as a part of a process.
type Service struct {
	deployment.Common
	Keyring *secure.Keyring // of the master key
	DB      *pg.DB
	HTTP    *fiber.App

	name    string
	process *run.Process
}

// Open checks the configuration, opens the database, checks the master key against the sealed columns of the
// service, and makes the HTTP application. The service has the name of its schema.
func Open[K any](ctx context.Context, p *run.Process, cfg Config, database pg.Config,
	sealed []secure.SealedColumn[K]) (*Service, error) {
	common, err := cfg.Validate()
	if err != nil {
		return nil, err
	}
	keyring, err := secure.ParseKeyring(cfg.MasterKey)
	if err != nil {
		return nil, fmt.Errorf("DOORWARD_MASTER_KEY: %w", err)
	}
	database.MaxConns = int32(cfg.PoolSize)
	db, err := openDatabase(ctx, p, database)
	if err != nil {
		return nil, err
	}
	if err := awaitMasterKey(ctx, p, database.Schema, func() error {
		return reseal.EnsureCanaries(ctx, db, keyring, sealed...)
	}); err != nil {
		return nil, err
	}
	former, err := formeraddress.All(ctx, db)
	if err != nil {
		return nil, fmt.Errorf("read the former addresses of tenants: %w", err)
	}
	common.Base = common.Base.WithFormer(former...)
	s := &Service{Common: common, Keyring: keyring, DB: db, name: database.Schema, process: p}
	s.Go("analyze", db.Analyze)
	s.HTTP = rest.New(rest.Config{Service: s.name, Base: common.Base, Signer: common.Signer})
	return s, nil
}

// openRetry is the pause between two attempts of retry.
const openRetry = time.Second

// retry calls try until it succeeds, with the reason of the last failure in /readyz under the name of a check, which
// remove takes away. An error that waiting does not mend is returned, and so is the last one when ctx ends.
func retry(ctx context.Context, p *run.Process, check, begins string, mends func(error) bool, try func() error,
	warn func(error)) (remove func(), err error) {
	var waits atomic.Value
	waits.Store(begins)
	remove = p.Check(check, func(context.Context) error { return errors.New(waits.Load().(string)) })
	for attempt := 1; ; attempt++ {
		err := try()
		if err == nil || !mends(err) {
			return remove, err
		}
		if attempt == 1 {
			warn(err)
		}
		waits.Store(pg.Cause(err))
		select {
		case <-ctx.Done():
			return remove, err
		case <-time.After(openRetry):
		}
	}
}

// openDatabase opens the database of a service. While PostgreSQL is away it waits; what waiting does not mend
// (pg.MayRecover) is an error.
func openDatabase(ctx context.Context, p *run.Process, cfg pg.Config) (db *pg.DB, err error) {
	check := "database " + cfg.Schema
	if _, err = retry(ctx, p, check, "it is being connected to, and its schema migrated", pg.MayRecover,
		func() (err error) {
			db, err = pg.Open(ctx, cfg)
			return err
		}, func(err error) {
			slog.WarnContext(ctx, "the database cannot be reached, waiting for it", "schema", cfg.Schema, "error",
				err.Error())
		}); err != nil {
		return nil, err
	}
	probe := pg.NewWriteProbe(db)
	p.OnClose(cfg.Schema+" database", db.Stop)
	p.Go(cfg.Schema+" write probe", probe.Run)
	p.Check(check, func(ctx context.Context) error { return readiness(probe.Check(ctx)) })
	return db, nil
}

// awaitMasterKey waits until the master key is that of the secrets in the database: until then the process must not
// seal.
func awaitMasterKey(ctx context.Context, p *run.Process, schema string, check func() error) error {
	mends := func(err error) bool { return errors.Is(err, reseal.ErrMasterKey) || pg.MayRecover(err) }
	remove, err := retry(ctx, p, "master key "+schema, "it is being checked", mends, check, func(err error) {
		slog.ErrorContext(ctx, "the master key cannot be used, waiting", "schema", schema, "error", err.Error())
	})
	if err != nil {
		return err
	}
	remove()
	return nil
}

// readiness turns the error of a write probe into that of a readiness check.
func readiness(err error) error {
	if errors.Is(err, pg.ErrOnlyReads) {
		return run.Degraded(pg.Reason(err))
	}
	return err
}

// Go runs a worker until the process ends.
func (s *Service) Go(worker string, fn func(context.Context) error) {
	s.process.Go(s.name+" "+worker, fn)
}

// Relay runs the worker that sends the events of the outbox to Kafka.
func (s *Service) Relay(o *outbox.Outbox, cfg outbox.Config) {
	s.Go("relay", o.Relay(cfg))
}

// Consume runs the worker that handles the events of other services (the Kafka consumer), and the
// worker that purges the ids of events that were handled long ago.
func (s *Service) Consume(o *outbox.Outbox, cfg outbox.Config, sources []string, handlers ...events.Handler) {
	s.Go("purge of seen events", o.PurgeSeen)
	s.Go("consumer", o.Consume(cfg, sources, handlers...))
}

// App is a wired service: what the other services of its process call, and its HTTP application.
type App[A any] struct {
	API  A
	HTTP *fiber.App
}

// processConfig is the environment of one service, which embeds Config.
type processConfig[P any] interface {
	Shared() Config
	// Dial returns the clients of the services that this one calls.
	Dial(*deployment.Peers) P
}

// Shared returns the part of the environment that all services have.
func (c Config) Shared() Config { return c }

// Main is the main function of a service in a process of its own. open wires the service.
func Main[C processConfig[P], P, A any](name, about string,
	open func(context.Context, *run.Process, C, P) (*App[A], error)) {
	run.Main(name, about, env.Load[C], func(ctx context.Context, p *run.Process, cfg C) error {
		return Run(ctx, p, cfg,
			open)
	})
}

// Run wires a service in a process of its own, whose peers are other processes, and serves it.
func Run[C processConfig[P], P, A any](ctx context.Context, p *run.Process, cfg C,
	open func(context.Context, *run.Process, C, P) (*App[A], error)) error {
	dial := cfg.Shared().Peers()
	peers := cfg.Dial(dial)
	if err := dial.Err(); err != nil {
		return err
	}
	app, err := open(ctx, p, cfg, peers)
	if err != nil {
		return err
	}
	return listen(p, cfg.Shared(), app.HTTP)
}

// listen serves the application of a service in a process of its own, on the address of
// DOORWARD_LISTEN, with TLS if DOORWARD_INTERNAL_TLS_CERT is set.
func listen(p *run.Process, cfg Config, app *fiber.App) error {
	listener, err := net.Listen("tcp", cfg.Listen)
	if err != nil {
		return fmt.Errorf("listen on DOORWARD_LISTEN: %w", err)
	}
	if cfg.TLS.Certificate != "" || cfg.TLS.Key != "" {
		own, err := certificate.Open(p, cfg.TLS.read)
		if err != nil {
			return errors.Join(fmt.Errorf("DOORWARD_INTERNAL_TLS_CERT and DOORWARD_INTERNAL_TLS_KEY: %w", err),
				listener.Close())
		}
		listener = tls.NewListener(listener, &tls.Config{
			MinVersion: tls.VersionTLS13, GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
				return own.Current(), nil
			},
		})
	}
	rest.Serve(p, "http", app, listener)
	return nil
}
