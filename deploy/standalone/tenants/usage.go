// Package tenants has the commands about the tenants of a deployment that read and write the databases of several
// services. What they share with the other commands is in package app.
package tenants

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/doorward/doorward/deploy/standalone/app"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/api/usageapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/env"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/pkg/usage"
	application "github.com/doorward/doorward/services/application/store"
	"github.com/doorward/doorward/services/directory/operator"
	directory "github.com/doorward/doorward/services/directory/store"
	notification "github.com/doorward/doorward/services/notification/store"
)

// databases are what the commands read.
type databases struct {
	Directory    secure.Secret `env:"DIRECTORY_DATABASE_URL,DATABASE_URL" required:"true" help:"PostgreSQL of the directory service"`
	Application  secure.Secret `env:"APPLICATION_DATABASE_URL,DATABASE_URL" required:"true" help:"PostgreSQL of the application service"`
	Notification secure.Secret `env:"NOTIFICATION_DATABASE_URL,DATABASE_URL" required:"true" help:"PostgreSQL of the notification service"`
}

// Variables declares what the commands read.
func Variables(source *env.Source) { source.Declare(new(databases)) }

// deployment is the data of a deployment while a command runs.
type deployment struct {
	directories  *directory.Store
	logins, sent *pg.DB // of the application and the notification service
}

// with calls do with the data of the deployment, whether the product runs or not.
func with(ctx context.Context, source *env.Source, do func(deployment) error) (err error) {
	cfg, stop, err := app.LoadWithDatabase[databases](ctx, source)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	opened := make([]*pg.DB, 0, 3)
	defer func() {
		for _, db := range opened {
			db.Close()
		}
	}()
	for _, schema := range []pg.Config{directory.Config(cfg.Directory), application.Config(cfg.Application), notification.Config(cfg.Notification)} {
		db, err := pg.Open(ctx, schema)
		if err != nil {
			return err
		}
		opened = append(opened, db)
	}
	return do(deployment{directory.New(opened[0], time.Now), opened[1], opened[2]})
}

// find returns the tenant with a key or an id.
func (d deployment) find(ctx context.Context, name string) (directoryapi.Tenant, error) {
	found, err := operator.FindTenant(ctx, d.directories, name)
	if errors.Is(err, apierr.NotFound) {
		return found, fmt.Errorf("no tenant has the key or the id %q", name)
	}
	return found, err
}

// usage adds up what the services have counted.
func (d deployment) usage(ctx context.Context, query usageapi.Query) ([]usageapi.Count, error) {
	if !query.Tenant.IsZero() {
		ctx = caller.WithTenant(ctx, query.Tenant)
	}
	logins, err := usage.Read(ctx, d.logins, query)
	if err != nil {
		return nil, err
	}
	sent, err := usage.Read(ctx, d.sent, query)
	return usageapi.Merge(logins, sent), err
}

// UsageQuery says which usage is asked for: days, both inclusive, and hour, day or month.
type UsageQuery struct{ Tenant, From, To, By string }

// Usage writes what tenants used to out, the newest first: of the tenant with a key or an id, or of all where that is
// empty.
func Usage(ctx context.Context, source *env.Source, in UsageQuery, asJSON bool, out io.Writer) error {
	if _, err := usageapi.ParseQuery(id.ID{}, in.From, in.To, in.By, time.Now()); err != nil {
		return fmt.Errorf("%w: %s", app.ErrUsage, apierr.From(err).Reason)
	}
	return with(ctx, source, func(d deployment) error {
		var of id.ID
		if in.Tenant != "" {
			tenant, err := d.find(ctx, in.Tenant)
			if err != nil {
				return err
			}
			of = tenant.ID
		}
		query, err := usageapi.ParseQuery(of, in.From, in.To, in.By, time.Now())
		if err != nil {
			return err
		}
		counts, err := d.usage(ctx, query)
		if err != nil {
			return err
		}
		if asJSON {
			return writeJSON(out, counts)
		}
		keys := map[id.ID]string{}
		for _, c := range counts {
			if keys[c.Tenant] == "" {
				if keys[c.Tenant], err = d.keyOf(ctx, c.Tenant); err != nil {
					return err
				}
			}
			_, _ = fmt.Fprintf(out, "%s %s %d %d %d %d\n", keys[c.Tenant], c.From.Format(time.RFC3339), c.Logins, c.FailedLogins, c.Mails, c.Texts)
		}
		return nil
	})
}

// keyOf returns the key of a tenant, or its id where the tenant has gone since.
func (d deployment) keyOf(ctx context.Context, tenant id.ID) (string, error) {
	found, err := d.directories.Tenant(caller.WithTenant(ctx, tenant), tenant)
	if errors.Is(err, apierr.NotFound) {
		return tenant.String(), nil
	}
	return found.Key, err
}

// writeJSON writes a value, indented.
func writeJSON(out io.Writer, value any) error {
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	return encoder.Encode(value)
}
