package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/env"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/secure"
	directory "github.com/doorward/doorward/services/directory/store"
)

// TenantVariables declares what ExportTenant and ImportTenant read.
func TenantVariables(source *env.Source) { RotateVariables(source) }

// manifest lists what an export holds, in the order in which it is imported. While
// it is written it is progress.json, and manifest.json when the export is complete.
type manifest struct {
	Format int              `json:"format"`
	Tenant string           `json:"tenant"` // UUID
	Key    string           `json:"key"`
	Tables []*exportedTable `json:"tables"`
}

const (
	manifestFormat = 1
	manifestFile   = "manifest.json"
	progressFile   = "progress.json"
)

// exportedTable is a table of a service, and the files that hold the rows of the
// tenant: JSON objects, one a line.
type exportedTable struct {
	Schema  string          `json:"schema"`
	Table   string          `json:"table"`
	Columns []string        `json:"columns"`
	Rows    int             `json:"rows"`
	Files   []string        `json:"files"`
	Last    json.RawMessage `json:"last,omitempty"` // key of the last row, while rows are missing
	Done    bool            `json:"done"`
}

func (t *exportedTable) name() string { return t.Schema + "." + t.Table }

// leftOut of an export is what is no resource and has no use in another deployment.
var leftOut = map[string]string{
	"outbox":                     "events on their way to the consumers of this deployment",
	"seen_events":                "events that this deployment has handled",
	"tenant_shards":              "in which database of this deployment the tenant is",
	"closed_tenants":             "whether it is being moved to another one",
	"directory.login_names":      "written by a trigger of accounts",
	"directory.agent_checks":     "password checks of logins that wait",
	"application.login_counters": "login throttle; its keys come from a secret of the deployment",
	"notification.deliveries":    "mails and texts, which this deployment sends",
	"idsite.login_flows":         "logins of browsers that have a cookie of this deployment",
	"idsite.provider_logins":     "logins of browsers that have a cookie of this deployment",
	"idsite.sso_sessions":        "sessions of browsers that have a cookie of this deployment",
}

// lastTables make a tenant reachable, so they are imported after all others. The
// domains come before their site, whose trigger would add one.
var lastTables = []string{"application.dns_label_routes", "idsite.id_site_domains", "idsite.id_sites", "oauth.api_key_routes"}

// keyOf returns the columns that tell the rows of one tenant apart.
func keyOf(t pg.TenantTable) []string {
	return slices.DeleteFunc(slices.Clone(t.Primary), func(column string) bool { return column == "tenant_id" })
}

// deploymentData is the databases of all services and the key of what they seal.
type deploymentData struct {
	ring    *secure.Keyring
	schemas []sealedSchema
	dbs     map[string]*pg.DB // by schema
	stop    func() error
}

func openDeployment(ctx context.Context, source *env.Source) (d *deploymentData, err error) {
	d = &deploymentData{dbs: map[string]*pg.DB{}}
	if d.stop, err = openData(ctx, source); err != nil {
		return nil, err
	}
	var cfg rotateConfig
	source.Load(&cfg)
	err = source.Err()
	if err == nil {
		if d.ring, err = secure.ParseKeyring(cfg.MasterKey); err != nil {
			err = fmt.Errorf("DOORWARD_MASTER_KEY: %w", err)
		}
	}
	if err == nil {
		d.schemas = cfg.Databases.sealed()
		for _, schema := range d.schemas {
			var db *pg.DB
			if db, err = pg.Open(ctx, schema.config); err != nil {
				break
			}
			d.dbs[schema.config.Schema] = db
		}
	}
	if err != nil {
		return nil, errors.Join(err, d.close())
	}
	return d, nil
}

func (d *deploymentData) close() error {
	for _, db := range d.dbs {
		db.Close()
	}
	return d.stop()
}

// tenantByKey returns the tenant with a key.
func (d *deploymentData) tenantByKey(ctx context.Context, key string) (id.ID, error) {
	tenant, err := directory.New(d.dbs["directory"], nil).TenantByKey(ctx, key)
	if errors.Is(err, apierr.NotFound) {
		return id.ID{}, fmt.Errorf("no tenant has the key %q", key)
	}
	return tenant.ID, err
}

// schema returns what a service keeps sealed.
func (d *deploymentData) schema(name string) sealedSchema {
	for _, s := range d.schemas {
		if s.config.Schema == name {
			return s
		}
	}
	return sealedSchema{}
}

// quoted makes a list of columns for a statement.
func quoted(prefix string, columns []string) string {
	parts := make([]string, len(columns))
	for i, c := range columns {
		parts[i] = prefix + `"` + c + `"`
	}
	return strings.Join(parts, ", ")
}

// readManifest reads a manifest; ok is false where there is none.
func readManifest(path string) (m manifest, ok bool, err error) {
	raw, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return m, false, nil
	}
	if err != nil {
		return m, false, err
	}
	if err := json.Unmarshal(raw, &m); err != nil {
		return m, false, fmt.Errorf("read %s: %w", path, err)
	}
	if m.Format != manifestFormat {
		return m, false, fmt.Errorf("%s has the format %d; this command knows %d", path, m.Format, manifestFormat)
	}
	return m, true, nil
}

// write replaces a file of the folder in one step.
func (m *manifest) write(folder, name string) error {
	raw, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	part := filepath.Join(folder, name+".part")
	if err := os.WriteFile(part, append(raw, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(part, filepath.Join(folder, name))
}

// tenantID returns the id of the manifest's tenant.
func (m *manifest) tenantID() (tenant id.ID, err error) {
	err = readUUID(m.Tenant, &tenant)
	return tenant, err
}
