package tenantmove

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"filippo.io/age"

	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/formeraddress"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
	pgcache "github.com/doorward/doorward/pkg/pg/cache"
	"github.com/doorward/doorward/pkg/secure"
)

// Import reads a folder that Export has filled, and adds the tenant to this
// deployment (restore of one tenant), with its secrets sealed under this deployment's
// master key. It refuses an export that is not signed with the public key signer, or, where
// signer is empty, by a deployment with this one's master key, and one with a file that was
// changed, removed or added (signature.go), and a master key that is not that of the databases. The API keys are imported last. After an
// interruption another call continues. A tenant whose API keys are in this deployment is not
// imported again. found is called with the id of the tenant that the folder has.
func Import(ctx context.Context, d Deployment, folder string, identities []age.Identity, signer, former string,
	found func(id.ID), out io.Writer) error {
	m, exists, err := readManifest(filepath.Join(folder, manifestFile))
	if err != nil {
		return err
	}
	if !exists {
		return fmt.Errorf("%s has no %s: it is no complete export", folder, manifestFile)
	}
	i := &importer{Deployment: d, manifest: m, folder: folder, identities: identities, out: out, tables: map[string]pg.TenantTable{}}
	if i.tenant, err = m.tenantID(); err != nil {
		return err
	}
	found(i.tenant)
	ctx = caller.WithTenant(ctx, i.tenant)
	if err := m.checkSignature(d.Ring, folder, signer); err != nil {
		return err
	}
	if err := i.check(ctx); err != nil {
		return err
	}
	if err := m.checkFiles(ctx, folder); err != nil {
		return err
	}
	if err := d.EnsureKeys(ctx); err != nil {
		return err
	}
	if err := i.keepAddress(ctx, cmp.Or(former, m.BaseURL)); err != nil {
		return err
	}
	for _, t := range m.Tables {
		for n, file := range t.Files {
			added, err := i.importFile(ctx, t, file)
			if err != nil {
				return fmt.Errorf("%s: %w; run the command again to go on", file.Name, err)
			}
			if added {
				_, _ = fmt.Fprintf(out, "%s: %d of %d files\n", t.name(), n+1, len(t.Files))
			}
		}
	}
	_, _ = fmt.Fprintf(out, "the tenant %s is imported\n", m.Key)
	return nil
}

// keepAddress keeps the address that the tenant had, if it is known and another one than here.
func (i *importer) keepAddress(ctx context.Context, former string) error {
	if former = strings.TrimSuffix(former, "/"); former == "" || former == i.Address {
		return nil
	}
	for schema, db := range i.DBs {
		if err := formeraddress.Add(ctx, db, i.tenant, former); err != nil {
			return fmt.Errorf("%s: %w", schema, err)
		}
	}
	_, _ = fmt.Fprintf(i.out, "the services accept the former address %s when they have been restarted\n", former)
	return nil
}

type importer struct {
	Deployment
	manifest
	tenant     id.ID
	folder     string
	identities []age.Identity
	out        io.Writer
	tables     map[string]pg.TenantTable // by schema and name
}

// check refuses an export of a newer release, and a tenant that is in this deployment already.
func (i *importer) check(ctx context.Context) error {
	for schema, db := range i.DBs {
		tables, err := db.TenantTables(ctx)
		if err != nil {
			return err
		}
		for _, t := range tables {
			i.tables[schema+"."+t.Name] = t
		}
	}
	for _, t := range i.Tables {
		for _, column := range t.Columns {
			if !slices.Contains(i.tables[t.name()].Columns, column) {
				return fmt.Errorf("%s has no column %s: the export comes from a newer release; update this deployment first",
					t.name(), column)
			}
		}
	}
	keys, err := pg.Value[int](ctx, i.DBs["oauth"], `SELECT count(*) FROM api_key_routes WHERE tenant_id = $1`, i.tenant)
	if err == nil && keys > 0 {
		err = fmt.Errorf("the tenant %s is in this deployment and has API keys", i.Key)
	}
	return err
}

// importFile adds the rows of one file in one transaction, unless a former call has. Rows
// that exist stay as they are; a row that cannot be added is an error.
func (i *importer) importFile(ctx context.Context, t *exportedTable, file exportedFile) (added bool, err error) {
	rows, last, err := i.readFile(t, file)
	if err != nil {
		return false, err
	}
	primaryKey := append([]string{"tenant_id"}, primaryKeyWithoutTenant(i.tables[t.name()])...)
	fileRows := ` FROM json_populate_recordset(NULL::"` + t.Table + `", $1::json)`
	countExisting := `SELECT count(*)` + fileRows + ` r JOIN "` + t.Table + `" t USING (` +
		columnList("", primaryKey) + `)`
	db := i.DBs[t.Schema]
	if n, err := pg.Value[int](ctx, db, countExisting, "["+last+"]"); err != nil || n == 1 {
		return false, err
	}
	return true, db.InTx(ctx, func(tx *pg.Tx) error {
		document := "[" + strings.Join(rows, ",") + "]"
		columns := columnList("", t.Columns)
		if _, err := pg.Exec(ctx, tx, `INSERT INTO "`+t.Table+`" (`+columns+`) SELECT `+columns+fileRows+`
			ON CONFLICT (`+columnList("", i.tables[t.name()].Primary)+`) DO NOTHING`, document); err != nil {
			return err
		}
		pgcache.ClearAfter(tx) // of processes that were asked for the tenant before and have kept that it is not there
		n, err := pg.Value[int](ctx, tx, countExisting, document)
		if err == nil && n != len(rows) {
			err = fmt.Errorf("%d of %d rows have a unique value that another tenant has in this deployment", len(rows)-n,
				len(rows))
		}
		return err
	})
}

// readFile decrypts a file, and seals the values of the sealed columns of its rows.
func (i *importer) readFile(t *exportedTable, file exportedFile) (rows []string, last string, err error) {
	encrypted, err := file.read(i.folder)
	if err != nil {
		return nil, "", err
	}
	plain, err := age.Decrypt(bytes.NewReader(encrypted), i.identities...)
	if err != nil {
		return nil, "", err
	}
	content, err := io.ReadAll(plain)
	if err != nil {
		return nil, "", err
	}
	uuid := strings.ReplaceAll(i.Tenant, "-", "")
	for line := range bytes.Lines(content) {
		row := map[string]json.RawMessage{}
		if err := json.Unmarshal(line, &row); err != nil {
			return nil, "", err
		}
		if strings.ReplaceAll(strings.Trim(string(row["tenant_id"]), `"`), "-", "") != uuid {
			return nil, "", errors.New("a row belongs to another tenant")
		}
		changed, err := i.schema(t.Schema).Convert(t.Table, row, func(value, purpose string) (string, error) {
			plain, err := base64.StdEncoding.DecodeString(value)
			return `\x` + hex.EncodeToString(i.Ring.Seal(secure.Secret(plain), purpose)), err
		})
		if err != nil {
			return nil, "", err
		}
		if changed {
			if line, err = json.Marshal(row); err != nil {
				return nil, "", err
			}
		}
		rows = append(rows, string(line))
	}
	if len(rows) == 0 {
		return nil, "", errors.New("the file is empty")
	}
	return rows, rows[len(rows)-1], nil
}
