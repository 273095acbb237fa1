package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"filippo.io/age"

	"github.com/doorward/doorward/deploy/standalone/tenantmove"
	"github.com/doorward/doorward/pkg/agesecret"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/deployment"
	"github.com/doorward/doorward/pkg/env"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/operatorlog"
	"github.com/doorward/doorward/pkg/secure"
	directory "github.com/doorward/doorward/services/directory/store"
)

// tenantConfig is what ExportTenant and ImportTenant read.
type tenantConfig struct {
	Databases Databases
	MasterKey secure.Secret `env:"DOORWARD_MASTER_KEY" required:"true" help:"master keys that encrypt secrets at rest"`
	BaseURL   string        `env:"DOORWARD_BASE_URL" help:"public address of the management API, which an export names"`
}

// TenantVariables declares what ExportTenant and ImportTenant read.
func TenantVariables(source *env.Source) { source.Declare(new(tenantConfig)) }

// DeploymentData is the databases of all services, and the master keys under which values
// in them are sealed.
type DeploymentData struct {
	tenantmove.Deployment
	stop func() error
}

// OpenDeployment opens the data that a command works on, whether the product runs or not.
func OpenDeployment(ctx context.Context, source *env.Source) (d *DeploymentData, err error) {
	d = new(DeploymentData)
	inFolder := !namesADatabase(source)
	if d.stop, err = resolveDatabase(ctx, source); err != nil {
		return nil, err
	}
	if err := d.open(ctx, source, inFolder); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// open opens what the source names, with the variables of the data folder.
func (d *DeploymentData) open(ctx context.Context, source *env.Source, inFolder bool) (err error) {
	if inFolder {
		if err := resolveFolder(source); err != nil {
			return err
		}
	}
	cfg := env.Load[tenantConfig](source)
	if err := source.Err(); err != nil {
		return err
	}
	d.Address, d.Schemas = strings.TrimSuffix(cfg.BaseURL, "/"), cfg.Databases.sealedSchemas()
	if d.Ring, err = parseMasterKey(cfg.MasterKey); err != nil {
		return err
	}
	d.DBs, err = cfg.Databases.Open(ctx)
	return err
}

// Close closes the databases, and ends the PostgreSQL that OpenDeployment has started.
func (d *DeploymentData) Close() error {
	CloseAll(d.DBs)
	return d.stop()
}

// findTenant returns the tenant with a key, such as clever-otter, or an id.
func (d *DeploymentData) findTenant(ctx context.Context, name string) (directoryapi.Tenant, error) {
	return FindTenant(ctx, directory.New(d.DBs["directory"], nil), name)
}

// NewExportKeyPair writes a new age key pair for exports: the identity file, which is the
// private key for ImportTenant, with the public key for ExportTenant in a comment. For recipients
// (SecretRecipients) it writes JSON instead, with that file encrypted.
func NewExportKeyPair(source *env.Source, recipients string, out io.Writer) error {
	sealedFor, err := SecretRecipients(source, recipients)
	if err != nil {
		return err
	}
	pair, err := age.GenerateX25519Identity()
	if err != nil {
		return err
	}
	identity := fmt.Sprintf("# public key: %s\n%s\n", pair.Recipient(), pair)
	if len(sealedFor) == 0 {
		_, err = io.WriteString(out, identity)
		return err
	}
	shown, err := agesecret.Show(secure.Secret(identity), sealedFor)
	if err != nil {
		return err
	}
	return WriteJSON(out, struct {
		PublicKey string `json:"publicKey"`
		agesecret.Shown
	}{pair.Recipient().String(), shown})
}

// ExportTenant writes all resources of the tenant with a key or an id into a folder, encrypted for the recipients, and
// signed (tenantmove.Export). It sets the tenant of the event.
func ExportTenant(
	ctx context.Context, source *env.Source, tenantName, recipients, folder string, e *operatorlog.Event, out io.Writer,
) (err error) {
	to, err := parseRecipients(recipients)
	if err != nil {
		return err
	}
	d, err := OpenDeployment(ctx, source)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	tenant, err := d.findTenant(ctx, tenantName)
	if err != nil {
		return err
	}
	e.Tenant = &tenant.ID
	return tenantmove.Export(ctx, d.Deployment, tenant, to, folder, out)
}

// ImportTenant adds the tenant of a folder that ExportTenant has filled to this deployment (tenantmove.Import). It sets
// the tenant of the event. former is the address that the tenant had; empty: that of the export.
func ImportTenant(
	ctx context.Context, source *env.Source, folder, identities, signer, former string, e *operatorlog.Event, out io.Writer,
) (err error) {
	if former != "" && !deployment.IsBaseURL(former) {
		return UsageError(fmt.Sprintf("--former-address %s: it has the form https://host[:port]/v1", former))
	}
	privateKeys, err := age.ParseIdentities(strings.NewReader(identities))
	if err != nil {
		return fmt.Errorf("read the identity, a private key of age: %w", err)
	}
	d, err := OpenDeployment(ctx, source)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	found := func(tenant id.ID) { e.Tenant = &tenant }
	return tenantmove.Import(ctx, d.Deployment, folder, privateKeys, signer, former, found, out)
}
