package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/env"
	"github.com/doorward/doorward/pkg/operatorlog"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/secure"
	directory "github.com/doorward/doorward/services/directory/store"
	"github.com/doorward/doorward/services/oauth"
	tokens "github.com/doorward/doorward/services/oauth/store"
)

// adminKeyConfig is what AdminKey reads.
type adminKeyConfig struct {
	Directory secure.Secret `env:"DIRECTORY_DATABASE_URL,DATABASE_URL" help:"PostgreSQL of the directory service"`
	OAuth     secure.Secret `env:"OAUTH_DATABASE_URL,DATABASE_URL" help:"PostgreSQL of the oauth service"`
	MasterKey secure.Secret `env:"DOORWARD_MASTER_KEY" help:"master keys that encrypt secrets at rest"`
}

// AdminKeyVariables declares what AdminKey reads.
func AdminKeyVariables(source *env.Source) { source.Declare(new(adminKeyConfig)) }

// AdminKey creates an API key of the owner of the tenant with a key or an id and writes
// the API key to out as JSON, its secret encrypted for recipients (secretRecipients). It sets the tenant of the event. It works on the database, whether the product runs or not,
// for a tenant without a usable API key of an administrator (locked out; break-glass access).
func AdminKey(
	ctx context.Context, source *env.Source, tenantName, recipients string, e *operatorlog.Event, out io.Writer,
) (err error) {
	sealedFor, err := secretRecipients(source, recipients)
	if err != nil {
		return err
	}
	stop, err := resolveDatabase(ctx, source)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	var cfg adminKeyConfig
	source.Load(&cfg)
	ring, err := secure.ParseKeyring(cfg.MasterKey)
	if err != nil {
		return fmt.Errorf("DOORWARD_MASTER_KEY: %w", err)
	}
	owner, err := cfg.owner(ctx, tenantName)
	if err != nil {
		return err
	}
	e.Tenant = &owner.TenantID
	db, err := pg.Open(ctx, tokens.Config(cfg.OAuth))
	if err != nil {
		return err
	}
	defer db.Close()
	ctx = caller.WithTenant(ctx, owner.TenantID)
	made, err := oauth.AdministratorKey(ctx, tokens.New(db, time.Now), ring, time.Now(), owner.TenantID, owner.ID)
	if err != nil {
		return err
	}
	member, text, err := printedSecret(made.Secret, sealedFor)
	if err != nil {
		return err
	}
	return writeJSON(out, map[string]string{"id": made.ID, member: text})
}

// owner returns the account of the owner of the tenant with a key or an id.
func (cfg *adminKeyConfig) owner(ctx context.Context, tenantName string) (directoryapi.Account, error) {
	db, err := pg.Open(ctx, directory.Config(cfg.Directory))
	if err != nil {
		return directoryapi.Account{}, err
	}
	defer db.Close()
	data := directory.New(db, time.Now)
	tenant, err := findTenant(ctx, data, tenantName)
	if err != nil {
		return directoryapi.Account{}, err
	}
	return data.Owner(caller.WithTenant(ctx, tenant.ID), tenant.ID)
}
