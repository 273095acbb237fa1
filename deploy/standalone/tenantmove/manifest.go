// Package tenantmove writes a tenant into a folder, encrypted and signed (export.go, signature.go), and reads it back into
// another deployment (import.go). The commands are in deploy/standalone/app/tenant.go.
package tenantmove

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/doorward/doorward/deploy/standalone/sealed"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/secure"
)

// Deployment is the databases of all services, and the master keys under which values in them are sealed.
type Deployment struct {
	Ring    *secure.Keyring
	Schemas []sealed.Schema
	DBs     map[string]*pg.DB // by schema
	Address string            // the base address (DOORWARD_BASE_URL); empty where it is not known
}

// schema returns the schema of a service by its name.
func (d Deployment) schema(name string) sealed.Schema {
	for _, s := range d.Schemas {
		if s.Config.Schema == name {
			return s
		}
	}
	return sealed.Schema{}
}

// EnsureKeys returns an error where the master keys are not those of the databases, and adds what tells that of a new
// one (canaries).
func (d Deployment) EnsureKeys(ctx context.Context) error {
	for _, schema := range d.Schemas {
		if err := schema.Ensure(ctx, d.DBs[schema.Config.Schema], d.Ring); err != nil {
			return fmt.Errorf("%s: %w", schema.Config.Schema, err)
		}
	}
	return nil
}

// manifest lists the tables and files of an export, in the order in which they are
// imported. It is the file progress.json as long as the export is incomplete, and
// manifest.json, which is signed (signature.go), after that.
type manifest struct {
	Format int              `json:"format"`
	Tenant string           `json:"tenant"` // UUID
	Key    string           `json:"key"`    // tenant key, such as clever-otter
	Tables []*exportedTable `json:"tables"`
	// BaseURL is the address that the tenant had: that of the exporting deployment. It is empty where that was not known.
	BaseURL string `json:"baseUrl,omitempty"`

	raw []byte // the file that it was read from
}

const (
	manifestFormat = 2
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
	Files   []exportedFile  `json:"files"`
	Last    json.RawMessage `json:"last,omitempty"` // primary key of the last exported row, as long as the table is incomplete
	Done    bool            `json:"done"`
}

// exportedFile is a file of an export, and the SHA-256 of its bytes as they are in the
// folder, in hexadecimal digits.
type exportedFile struct {
	Name   string `json:"name"`
	SHA256 string `json:"sha256"`
}

// name is the table's name with its schema.
func (t *exportedTable) name() string { return t.Schema + "." + t.Table }

// Excluded are tables that an export leaves out, with the reason: their rows are no
// resources and have no use in another deployment.
var Excluded = map[string]string{
	"outbox":                             "events that are not yet sent to the consumers of this deployment",
	"seen_events":                        "events that this deployment has handled",
	"directory.agent_checks":             "password checks that logins wait for",
	"application.missing_user_addresses": "what doorward doctor warns of; the next login records it again",
	"application.failed_logins":          "what doorward logins shows; the audit log of the former deployment has them",
	"application.login_counters":         "counters of failed logins (lockout); their ids come from a secret of the deployment",
	"notification.deliveries":            "mails and text messages, which this deployment sends",
	"idsite.login_flows":                 "logins of browsers that have a cookie of this deployment",
	"idsite.provider_logins":             "logins of browsers that have a cookie of this deployment",
}

// importedLast are the tables whose rows make a tenant reachable, imported after all other
// tables.
var importedLast = []string{"application.dns_label_routes", "idsite.id_site_domains", "idsite.id_sites",
	"oauth.api_key_routes"}

// primaryKeyWithoutTenant returns the columns of the primary key but for tenant_id: they
// identify a row among those of one tenant.
func primaryKeyWithoutTenant(t pg.TenantTable) []string {
	return slices.DeleteFunc(slices.Clone(t.Primary), func(column string) bool { return column == "tenant_id" })
}

// columnList quotes columns for a statement, each with a prefix such as "t.".
func columnList(prefix string, columns []string) string {
	parts := make([]string, len(columns))
	for i, c := range columns {
		parts[i] = prefix + `"` + c + `"`
	}
	return strings.Join(parts, ", ")
}

// readManifest reads a manifest.
func readManifest(path string) (m manifest, exists bool, err error) {
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
	m.raw = raw
	return m, true, nil
}

// encode returns a manifest as the content of its file.
func (m *manifest) encode() ([]byte, error) {
	raw, err := json.MarshalIndent(m, "", "  ")
	return append(raw, '\n'), err
}

// writeFile replaces a file of a folder atomically.
func writeFile(folder, name string, content []byte) error {
	part := filepath.Join(folder, name+".part")
	if err := os.WriteFile(part, content, 0o600); err != nil {
		return err
	}
	return os.Rename(part, filepath.Join(folder, name))
}

// tenantID returns the id of the manifest's tenant.
func (m *manifest) tenantID() (tenant id.ID, err error) {
	err = sealed.ReadUUID(m.Tenant, &tenant)
	return tenant, err
}
