package app

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/doorward/doorward/pkg/env"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/pg/private"
	"github.com/doorward/doorward/pkg/run"
	"github.com/doorward/doorward/pkg/secure"
	application "github.com/doorward/doorward/services/application/store"
	directory "github.com/doorward/doorward/services/directory/store"
	idsite "github.com/doorward/doorward/services/idsite/store"
	mfa "github.com/doorward/doorward/services/mfa/store"
	notification "github.com/doorward/doorward/services/notification/store"
	oauth "github.com/doorward/doorward/services/oauth/store"
)

// Databases are the addresses of the PostgreSQL database of each service.
type Databases struct {
	Directory    secure.Secret `env:"DIRECTORY_DATABASE_URL,DATABASE_URL" required:"true" help:"PostgreSQL of the directory service"`
	Application  secure.Secret `env:"APPLICATION_DATABASE_URL,DATABASE_URL" required:"true" help:"PostgreSQL of the application service"`
	OAuth        secure.Secret `env:"OAUTH_DATABASE_URL,DATABASE_URL" required:"true" help:"PostgreSQL of the oauth service"`
	MFA          secure.Secret `env:"MFA_DATABASE_URL,DATABASE_URL" required:"true" help:"PostgreSQL of the mfa service"`
	Notification secure.Secret `env:"NOTIFICATION_DATABASE_URL,DATABASE_URL" required:"true" help:"PostgreSQL of the notification service"`
	IDSite       secure.Secret `env:"IDSITE_DATABASE_URL,DATABASE_URL" required:"true" help:"PostgreSQL of the idsite service"`
}

// allInOneDatabase are the databases of services that share one.
func allInOneDatabase(url string) Databases {
	all := secure.Secret(url)
	return Databases{Directory: all, Application: all, OAuth: all, MFA: all, Notification: all, IDSite: all}
}

// Open opens the databases, by schema, and migrates them. CloseAll closes them.
func (d Databases) Open(ctx context.Context) (map[string]*pg.DB, error) {
	opened := map[string]*pg.DB{}
	for _, schema := range d.Configs() {
		db, err := pg.Open(ctx, schema)
		if err != nil {
			CloseAll(opened)
			return nil, err
		}
		opened[schema.Schema] = db
	}
	return opened, nil
}

// CloseAll closes what Databases.Open has opened.
func CloseAll(opened map[string]*pg.DB) {
	for _, db := range opened {
		db.Close()
	}
}

// Configs returns the configuration of each service's schema. No schema needs another.
func (d Databases) Configs() []pg.Config {
	return []pg.Config{
		directory.Config(d.Directory), application.Config(d.Application), oauth.Config(d.OAuth),
		mfa.Config(d.MFA), notification.Config(d.Notification), idsite.Config(d.IDSite),
	}
}

// namesADatabase reports whether the environment names the database of any service.
func namesADatabase(source *env.Source) bool {
	return slices.ContainsFunc([]string{"", "DIRECTORY_", "APPLICATION_", "OAUTH_", "MFA_", "NOTIFICATION_", "IDSITE_"},
		func(service string) bool { return source.Has(service + "DATABASE_URL") })
}

// resolveDatabase decides which database a subcommand works on: that of the environment,
// if it names one (DATABASE_URL), or else that of the data folder, whose address and secrets it
// then sets in the source. Where no process runs the PostgreSQL of the data folder,
// resolveDatabase starts it, and stop ends it.
func resolveDatabase(ctx context.Context, source *env.Source) (stop func() error, err error) {
	stop = func() error { return nil }
	cfg := FromEnv(source)
	source.Declare(new(run.Config)) // as run.Main does: the variables of the services are no unknown names here
	if namesADatabase(source) {
		return stop, nil
	}
	url, secrets, stop, err := startDatabase(ctx, cfg)
	if err != nil {
		return nil, err
	}
	source.SetDefault("DATABASE_URL", url)
	source.SetDefault("DOORWARD_MASTER_KEY", secrets.Master)
	source.SetDefault("DOORWARD_INTERNAL_SECRET", secrets.Internal)
	return stop, nil
}

// startDatabase returns the address of the PostgreSQL of the data folder, which it starts where no process runs it, until
// stop, and the secrets of the folder.
func startDatabase(ctx context.Context, cfg Config) (url string, secrets secretsFile, stop func() error, err error) {
	exists, err := (&folder{path: cfg.DataDir}).readJSON("secrets.json", &secrets)
	if err != nil {
		return "", secrets, nil, err
	}
	if !exists {
		return "", secrets, nil, UsageError(fmt.Sprintf(
			"%s is no data folder of standalone; set DOORWARD_DATA_DIR, or DATABASE_URL and DOORWARD_MASTER_KEY", cfg.DataDir))
	}
	dir := filepath.Join(cfg.DataDir, "postgres")
	server, err := private.Start(ctx, private.Config{Dir: dir, Bin: cfg.PostgresBin, Durable: true})
	switch {
	case errors.Is(err, private.ErrRunning):
		url, err = private.Running(dir)
		return url, secrets, func() error { return nil }, err
	case err != nil:
		return "", secrets, nil, err
	}
	return server.URL(private.Database), secrets, func() error { return server.Stop(context.WithoutCancel(ctx)) }, nil
}

// LoadWithDatabase returns what a subcommand reads of the source, with the database that it works on
// (resolveDatabase), until stop.
func LoadWithDatabase[T any](ctx context.Context, source *env.Source) (cfg T, stop func() error, err error) {
	stop, err = resolveDatabase(ctx, source)
	if err != nil {
		return cfg, nil, err
	}
	cfg = env.Load[T](source)
	if err := source.Err(); err != nil {
		return cfg, nil, errors.Join(err, stop())
	}
	return cfg, stop, nil
}
