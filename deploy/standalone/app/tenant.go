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
	"github.com/doorward/doorward/pkg/env"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/operatorlog"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/secure"
	directory "github.com/doorward/doorward/services/directory/store"
)

// TenantVariables declares what ExportTenant and ImportTenant read.
func TenantVariables(source *env.Source) { RotateVariables(source) }

// DeploymentData is the databases of all services, and the master keys under which values
// in them are sealed.
type DeploymentData struct {
	tenantmove.Deployment
	stop func() error
}

// OpenDeployment opens the data that a command works on, whether the product runs or not.
func OpenDeployment(ctx context.Context, source *env.Source) (d *DeploymentData, err error) {
	d = &DeploymentData{Deployment: tenantmove.Deployment{DBs: map[string]*pg.DB{}}}
	if d.stop, err = resolveDatabase(ctx, source); err != nil {
		return nil, err
	}
	var cfg rotateConfig
	source.Load(&cfg)
	err = source.Err()
	if err == nil {
		d.Ring, err = parseMasterKey(cfg.MasterKey)
	}
	if err == nil {
		d.Schemas = cfg.Databases.sealedSchemas()
		for _, schema := range d.Schemas {
			var db *pg.DB
			if db, err = pg.Open(ctx, schema.Config); err != nil {
				break
			}
			d.DBs[schema.Config.Schema] = db
		}
	}
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// Close closes the databases, and ends the PostgreSQL that OpenDeployment has started.
func (d *DeploymentData) Close() error {
	for _, db := range d.DBs {
		db.Close()
	}
	return d.stop()
}

// FindTenant returns the tenant with a key, such as clever-otter, or an id.
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
// the tenant of the event.
func ImportTenant(
	ctx context.Context, source *env.Source, folder, identities, signer string, e *operatorlog.Event, out io.Writer,
) (err error) {
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
	return tenantmove.Import(ctx, d.Deployment, folder, privateKeys, signer, found, out)
}
