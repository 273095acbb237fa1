package app

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"filippo.io/age"

	"github.com/doorward/doorward/pkg/env"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
)

// exportFileSize is where a file of an export ends and the next begins.
const exportFileSize = 4 << 20

// ExportTenant writes all resources of the tenant with a key into a folder, each
// file encrypted for the recipients, which are public keys of age. Values that are
// sealed under the master key are opened first, and password hashes stay what they
// are. Cut short, the next call with the same folder goes on. The rows of a schema
// are those of one moment, of each call.
func ExportTenant(ctx context.Context, source *env.Source, key, recipients, folder string, out io.Writer) (err error) {
	to, err := age.ParseRecipients(strings.NewReader(recipients))
	if err != nil {
		return fmt.Errorf("the recipient is no public key of age, such as age1…; doorward tenant key makes one: %w", err)
	}
	d, err := openDeployment(ctx, source)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.close()) }()
	tenant, err := d.tenantByKey(ctx, key)
	if err != nil {
		return err
	}
	e := &exporter{deploymentData: d, tenant: tenant, to: to, folder: folder, out: out}
	if err := e.plan(ctx, key); err != nil {
		return err
	}
	for _, schema := range d.schemas {
		if err := e.schemaRows(ctx, schema); err != nil {
			return fmt.Errorf("%s: %w; run the command again to go on", schema.config.Schema, err)
		}
	}
	for _, t := range e.Tables {
		t.Last = nil
	}
	if err := e.write(folder, manifestFile); err != nil {
		return err
	}
	_, _ = fmt.Fprintf(out, "the export of %s is complete\n", key)
	return os.Remove(filepath.Join(folder, progressFile))
}

type exporter struct {
	*deploymentData
	manifest
	tenant id.ID
	to     []age.Recipient
	folder string
	out    io.Writer
}

// plan reads how far an export has come, or begins one.
func (e *exporter) plan(ctx context.Context, key string) error {
	if err := os.MkdirAll(e.folder, 0o700); err != nil {
		return err
	}
	if _, done, err := readManifest(filepath.Join(e.folder, manifestFile)); err != nil || done {
		return errors.Join(err, fmt.Errorf("%s holds a complete export: choose another folder", e.folder))
	}
	uuid := hex.EncodeToString(e.tenant[:])
	begun, ok, err := readManifest(filepath.Join(e.folder, progressFile))
	switch {
	case err != nil:
		return err
	case ok && begun.Tenant != uuid:
		return fmt.Errorf("%s holds a part of the tenant %s: choose another folder", e.folder, begun.Key)
	case ok:
		e.manifest = begun
		return nil
	}
	e.manifest = manifest{Format: manifestFormat, Tenant: uuid, Key: key}
	for _, schema := range e.schemas {
		tables, err := e.dbs[schema.config.Schema].TenantTables(ctx)
		if err != nil {
			return err
		}
		for _, t := range tables {
			table := &exportedTable{Schema: schema.config.Schema, Table: t.Name, Columns: t.Columns, Files: []string{}}
			if leftOut[t.Name] == "" && leftOut[table.name()] == "" {
				e.Tables = append(e.Tables, table)
			}
		}
	}
	slices.SortStableFunc(e.Tables, func(a, b *exportedTable) int {
		return slices.Index(lastTables, a.name()) - slices.Index(lastTables, b.name())
	})
	return e.write(e.folder, progressFile)
}

// schemaRows exports what is missing of the tables of a schema, as they are at one
// moment; those that are in another database than the tenant at another.
func (e *exporter) schemaRows(ctx context.Context, schema sealedSchema) error {
	db := e.dbs[schema.config.Schema]
	tables, err := db.TenantTables(ctx)
	if err != nil {
		return err
	}
	of, err := db.OnShardOf(ctx, e.tenant)
	if err != nil {
		return err
	}
	err = e.tableRows(of, schema, tables, func(t string) bool { return schema.config.Placements[t] != pg.OnMain })
	if err != nil {
		return err
	}
	return e.tableRows(db.OnMain(ctx), schema, tables, func(string) bool { return true })
}

// tableRows exports what is missing of those tables that chosen names.
func (e *exporter) tableRows(ctx context.Context, schema sealedSchema, tables []pg.TenantTable, chosen func(string) bool) error {
	return e.dbs[schema.config.Schema].InTx(ctx, func(tx *pg.Tx) error {
		if _, err := tx.Exec(ctx, `SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY`); err != nil {
			return err
		}
		for _, t := range e.Tables {
			if t.Schema != schema.config.Schema || t.Done || !chosen(t.Table) {
				continue
			}
			at := slices.IndexFunc(tables, func(found pg.TenantTable) bool { return found.Name == t.Table })
			if at < 0 {
				return fmt.Errorf("the table %s is gone", t.Table)
			}
			if err := e.rows(ctx, tx, schema, t, keyOf(tables[at])); err != nil {
				return fmt.Errorf("%s: %w", t.Table, err)
			}
		}
		return nil
	})
}

// rows exports what is missing of a table, in the order of its primary key.
func (e *exporter) rows(ctx context.Context, tx *pg.Tx, schema sealedSchema, t *exportedTable, key []string) error {
	query := `SELECT row_to_json(r)::text FROM (SELECT ` + quoted("t.", t.Columns) + ` FROM "` + t.Table + `" t WHERE t.tenant_id = $1`
	args := []any{e.tenant}
	if t.Last != nil {
		query = `SELECT row_to_json(r)::text FROM (SELECT ` + quoted("t.", t.Columns) + ` FROM "` + t.Table + `" t,
			json_populate_record(NULL::"` + t.Table + `", $2::json) k
			WHERE t.tenant_id = $1 AND (` + quoted("t.", key) + `) > (` + quoted("k.", key) + `)`
		args = append(args, string(t.Last))
	}
	query += ` ORDER BY ` + quoted("t.", append([]string{"tenant_id"}, key...)) + `) r`
	rows, err := tx.Query(ctx, query, args...)
	if err != nil {
		return pg.Error(err)
	}
	defer rows.Close()
	var file *exportFile
	defer func() {
		if file != nil {
			file.discard()
		}
	}()
	end := func() error {
		if err := file.close(); err != nil {
			return err
		}
		t.Files, t.Rows, t.Last = append(t.Files, file.name), t.Rows+file.rows, file.last
		file = nil
		if err := e.write(e.folder, progressFile); err != nil {
			return err
		}
		_, _ = fmt.Fprintf(e.out, "%s: %d\n", t.name(), t.Rows)
		return ctx.Err()
	}
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			return err
		}
		if file == nil {
			if file, err = e.newFile(fmt.Sprintf("%s.%04d.age", t.name(), len(t.Files)+1)); err != nil {
				return err
			}
		}
		if err := e.line(file, schema, t, key, line); err != nil {
			return err
		}
		if file.size >= exportFileSize && len(key) > 0 {
			if err := end(); err != nil {
				return err
			}
		}
	}
	if err := rows.Err(); err != nil {
		return pg.Error(err)
	}
	t.Done = true
	if file == nil {
		return e.write(e.folder, progressFile)
	}
	return end()
}

// line writes a row, with what is sealed in it opened.
func (e *exporter) line(to *exportFile, schema sealedSchema, t *exportedTable, key []string, line string) error {
	row := map[string]json.RawMessage{}
	if err := json.Unmarshal([]byte(line), &row); err != nil {
		return err
	}
	to.last = pick(row, key)
	changed, err := convertSealed(schema, t.Table, row, func(value, purpose string) (string, error) {
		sealed, err := hex.DecodeString(strings.TrimPrefix(value, `\x`))
		if err != nil {
			return "", err
		}
		plain, err := e.ring.Open(sealed, purpose)
		return base64.StdEncoding.EncodeToString([]byte(plain)), err
	})
	if err != nil {
		return err
	}
	if changed {
		raw, err := json.Marshal(row)
		if err != nil {
			return err
		}
		line = string(raw)
	}
	to.rows++
	to.size += len(line) + 1
	_, err = io.WriteString(to.buffer, line+"\n")
	return err
}

// convertSealed replaces the values of the sealed columns of a row.
func convertSealed(schema sealedSchema, table string, row map[string]json.RawMessage,
	convert func(value, purpose string) (string, error),
) (changed bool, err error) {
	for name, column := range schema.columns {
		if name[0] != table || string(row[name[1]]) == "null" {
			continue
		}
		var value, key string
		if err := errors.Join(json.Unmarshal(row[name[1]], &value), json.Unmarshal(row[column.key], &key)); err != nil {
			return false, fmt.Errorf("%s: %w", name[1], err)
		}
		purpose, err := column.purpose(key)
		if err != nil {
			return false, err
		}
		if value, err = convert(value, purpose); err != nil {
			return false, fmt.Errorf("%s of %s: %w", name[1], key, err)
		}
		if row[name[1]], err = json.Marshal(value); err != nil {
			return false, err
		}
		changed = true
	}
	return changed, nil
}

// pick returns the object of some members of a row.
func pick(row map[string]json.RawMessage, names []string) json.RawMessage {
	some := map[string]json.RawMessage{}
	for _, name := range names {
		some[name] = row[name]
	}
	raw, _ := json.Marshal(some) // of raw JSON
	return raw
}

// exportFile is an encrypted file, which has its name when it is complete.
type exportFile struct {
	name, path string
	file       *os.File
	sealer     io.WriteCloser
	buffer     *bufio.Writer
	rows, size int
	last       json.RawMessage
}

func (e *exporter) newFile(name string) (*exportFile, error) {
	f := &exportFile{name: name, path: filepath.Join(e.folder, name)}
	var err error
	if f.file, err = os.OpenFile(f.path+".part", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600); err != nil {
		return nil, err
	}
	if f.sealer, err = age.Encrypt(f.file, e.to...); err != nil {
		f.discard()
		return nil, err
	}
	f.buffer = bufio.NewWriter(f.sealer)
	return f, nil
}

func (f *exportFile) close() error {
	err := errors.Join(f.buffer.Flush(), f.sealer.Close(), f.file.Sync(), f.file.Close())
	if err != nil {
		return err
	}
	return os.Rename(f.path+".part", f.path)
}

// discard removes a file that is not complete.
func (f *exportFile) discard() { _ = errors.Join(f.file.Close(), os.Remove(f.path+".part")) }
