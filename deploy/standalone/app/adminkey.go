package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/doorward/doorward/deploy/standalone/sealed"
	"github.com/doorward/doorward/pkg/agesecret"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/env"
	"github.com/doorward/doorward/pkg/events"
	"github.com/doorward/doorward/pkg/operatorlog"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/secure"
	directorystore "github.com/doorward/doorward/services/directory/store"
	"github.com/doorward/doorward/services/oauth"
	tokens "github.com/doorward/doorward/services/oauth/store"
)

// adminKeyConfig is what AdminKey reads.
type adminKeyConfig struct {
	Directory secure.Secret `env:"DIRECTORY_DATABASE_URL,DATABASE_URL" required:"true" help:"PostgreSQL of the directory service"`
	OAuth     secure.Secret `env:"OAUTH_DATABASE_URL,DATABASE_URL" required:"true" help:"PostgreSQL of the oauth service"`
	MasterKey secure.Secret `env:"DOORWARD_MASTER_KEY" required:"true" help:"master keys that encrypt secrets at rest"`
}

// AdminKeyVariables declares what AdminKey reads.
func AdminKeyVariables(source *env.Source) { source.Declare(new(adminKeyConfig)) }

// AdminKey creates an API key of the owner of the tenant with a key or an id and writes
// the API key to out as JSON, its secret encrypted for recipients (SecretRecipients). It works on
// the database, whether the product runs or not, for a tenant without a usable API key of an
// administrator (locked out; break-glass access). The owner gets a mail about it. AdminKey sets the
// tenant of the event.
func AdminKey(
	ctx context.Context, source *env.Source, tenantName, recipients string, e *operatorlog.Event, out io.Writer,
) (err error) {
	sealedFor, err := SecretRecipients(source, recipients)
	if err != nil {
		return err
	}
	cfg, stop, err := LoadWithDatabase[adminKeyConfig](ctx, source)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	made, err := cfg.create(ctx, tenantName, e)
	if err != nil {
		return err
	}
	shown, err := agesecret.ShowAPIKey(made.ID, made.Secret, sealedFor)
	if err != nil {
		return err
	}
	return WriteJSON(out, shown)
}

// create creates the API key, and emits the event for the mail to the owner.
func (cfg adminKeyConfig) create(ctx context.Context, tenantName string, e *operatorlog.Event) (made tokens.APIKey, err error) {
	ring, err := parseMasterKey(cfg.MasterKey)
	if err != nil {
		return made, err
	}
	directories, err := pg.Open(ctx, directorystore.Config(cfg.Directory))
	if err != nil {
		return made, err
	}
	defer directories.Close()
	keys, err := pg.Open(ctx, tokens.Config(cfg.OAuth))
	if err != nil {
		return made, err
	}
	defer keys.Close()
	if err := sealed.NewSchema(tokens.Config(cfg.OAuth), oauth.Sealed).Ensure(ctx, keys, ring); err != nil {
		return made, err
	}
	accounts := directorystore.New(directories, time.Now)
	tenant, err := FindTenant(ctx, accounts, tenantName)
	if err != nil {
		return made, err
	}
	e.Tenant = &tenant.ID
	ctx = caller.WithTenant(ctx, tenant.ID)
	owner, err := accounts.Owner(ctx, tenant.ID)
	if err != nil {
		return made, err
	}
	made, err = oauth.AdministratorKey(ctx, tokens.New(keys, time.Now), ring, time.Now(), tenant.ID, owner.ID)
	if err != nil {
		return made, err
	}
	event := events.AdminKeyCreated{
		Tenant: tenant.ID, Account: owner.ID, Key: made.ID, At: e.At, Operator: e.Operator, Reason: e.Reason,
	}
	if err := accounts.Tx(ctx, func(tx *directorystore.Tx) error { return tx.Emit(ctx, event) }); err != nil {
		return made, fmt.Errorf("notify the owner: %w", err)
	}
	return made, nil
}
