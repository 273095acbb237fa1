package tenantmove

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"filippo.io/age"

	"github.com/doorward/doorward/deploy/standalone/sealed"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
)

// exportFileSize is the size in bytes at which a file of an export ends and the next begins.
const exportFileSize = 4 << 20

// Export writes all resources of a tenant into a folder
// (backup of one tenant, data portability). Each file is encrypted for the recipients,
// which are public keys of age. Values that are sealed under the master key are decrypted
// first; password hashes stay hashes. The export is signed by this deployment
// (signature.go), whose public key is written to out. After an interruption another call
// with the same folder continues. Each call reads the tables of a schema in one snapshot, so
// that they are consistent with each other; tables that another call exports may be from a
// later time.
func Export(ctx context.Context, d Deployment, tenant directoryapi.Tenant, recipients []age.Recipient, folder string, out io.Writer) error {
	e := &exporter{Deployment: d, tenant: tenant.ID, recipients: recipients, folder: folder, out: out}
	if err := e.plan(ctx, tenant.Key); err != nil {
		return err
	}
	for _, schema := range d.Schemas {
		if err := e.exportSchema(ctx, schema); err != nil {
			return fmt.Errorf("%s: %w; run the command again to go on", schema.Config.Schema, err)
		}
	}
	signer, err := e.finish()
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(out, "the export of %s is complete, signed with the key %s\n", tenant.Key, signer)
	return nil
}

type exporter struct {
	Deployment
	manifest
	tenant     id.ID
	recipients []age.Recipient
	folder     string
	out        io.Writer
}

// finish signs the manifest of an export whose tables are complete, and returns the public
// key. The manifest gets its name at the end, so that none is without its signature.
func (e *exporter) finish() (signer string, err error) {
	for _, t := range e.Tables {
		t.Last = nil
	}
	content, err := e.encode()
	if err != nil {
		return "", err
	}
	signer, signature := signManifest(e.Ring, content)
	err = errors.Join(writeFile(e.folder, signatureFile, signature), writeFile(e.folder, progressFile, content))
	if err != nil {
		return "", err
	}
	return signer, os.Rename(filepath.Join(e.folder, progressFile), filepath.Join(e.folder, manifestFile))
}

// saveProgress writes how far the export is, for a call after an interruption.
func (e *exporter) saveProgress() error {
	content, err := e.encode()
	if err != nil {
		return err
	}
	return writeFile(e.folder, progressFile, content)
}

// plan reads the progress of an interrupted export, or lists the tables of a new one.
func (e *exporter) plan(ctx context.Context, tenantKey string) error {
	if err := os.MkdirAll(e.folder, 0o700); err != nil {
		return err
	}
	if _, done, err := readManifest(filepath.Join(e.folder, manifestFile)); err != nil || done {
		return errors.Join(err, fmt.Errorf("%s holds a complete export: choose another folder", e.folder))
	}
	uuid := hex.EncodeToString(e.tenant[:])
	interrupted, exists, err := readManifest(filepath.Join(e.folder, progressFile))
	switch {
	case err != nil:
		return err
	case exists && interrupted.Tenant != uuid:
		return fmt.Errorf("%s holds a part of the tenant %s: choose another folder", e.folder, interrupted.Key)
	case exists:
		e.manifest = interrupted
		return nil
	}
	e.manifest = manifest{Format: manifestFormat, Tenant: uuid, Key: tenantKey, BaseURL: e.Address}
	for _, schema := range e.Schemas {
		tables, err := e.DBs[schema.Config.Schema].TenantTables(ctx)
		if err != nil {
			return err
		}
		for _, t := range tables {
			table := &exportedTable{Schema: schema.Config.Schema, Table: t.Name, Columns: t.Columns, Files: []exportedFile{}}
			if Excluded[t.Name] == "" && Excluded[table.name()] == "" {
				e.Tables = append(e.Tables, table)
			}
		}
	}
	slices.SortStableFunc(e.Tables, func(a, b *exportedTable) int {
		return slices.Index(importedLast, a.name()) - slices.Index(importedLast, b.name())
	})
	return e.saveProgress()
}

// exportSchema exports the rows that are missing of a schema's tables, in one snapshot.
func (e *exporter) exportSchema(ctx context.Context, schema sealed.Schema) error {
	db := e.DBs[schema.Config.Schema]
	tables, err := db.TenantTables(ctx)
	if err != nil {
		return err
	}
	return db.InTx(ctx, func(tx *pg.Tx) error {
		if _, err := tx.Exec(ctx, `SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY`); err != nil {
			return err
		}
		for _, t := range e.Tables {
			if t.Schema != schema.Config.Schema || t.Done {
				continue
			}
			at := slices.IndexFunc(tables, func(found pg.TenantTable) bool { return found.Name == t.Table })
			if at < 0 {
				return fmt.Errorf("the table %s is gone", t.Table)
			}
			if err := e.exportRows(ctx, tx, schema, t, primaryKeyWithoutTenant(tables[at])); err != nil {
				return fmt.Errorf("%s: %w", t.Table, err)
			}
		}
		return nil
	})
}

// exportRows exports the rows that are missing of a table, in the order of its primary key.
func (e *exporter) exportRows(
	ctx context.Context, tx *pg.Tx, schema sealed.Schema, t *exportedTable, primaryKey []string,
) error {
	query := `SELECT row_to_json(r)::text FROM (SELECT ` +
		columnList("t.", t.Columns) + ` FROM "` + t.Table + `" t WHERE t.tenant_id = $1`
	args := []any{e.tenant}
	if t.Last != nil {
		query = `SELECT row_to_json(r)::text FROM (SELECT ` + columnList("t.", t.Columns) + ` FROM "` + t.Table + `" t,
			json_populate_record(NULL::"` + t.Table + `", $2::json) k
			WHERE t.tenant_id = $1 AND (` + columnList("t.", primaryKey) + `) > (` + columnList("k.", primaryKey) + `)`
		args = append(args, string(t.Last))
	}
	query += ` ORDER BY ` + columnList("t.", append([]string{"tenant_id"}, primaryKey...)) + `) r`
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
	finishFile := func() error {
		if err := file.close(); err != nil {
			return err
		}
		t.Files, t.Rows, t.Last = append(t.Files, file.exported()), t.Rows+file.rows, file.last
		file = nil
		if err := e.saveProgress(); err != nil {
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
		if err := e.writeRow(file, schema, t, primaryKey, line); err != nil {
			return err
		}
		if file.size >= exportFileSize && len(primaryKey) > 0 {
			if err := finishFile(); err != nil {
				return err
			}
		}
	}
	if err := rows.Err(); err != nil {
		return pg.Error(err)
	}
	t.Done = true
	if file == nil {
		return e.saveProgress()
	}
	return finishFile()
}

// writeRow writes a row, with its sealed values decrypted.
func (e *exporter) writeRow(
	to *exportFile, schema sealed.Schema, t *exportedTable, primaryKey []string, line string,
) error {
	row := map[string]json.RawMessage{}
	if err := json.Unmarshal([]byte(line), &row); err != nil {
		return err
	}
	to.last = pick(row, primaryKey)
	changed, err := schema.Convert(t.Table, row, func(value, purpose string) (string, error) {
		sealed, err := hex.DecodeString(strings.TrimPrefix(value, `\x`))
		if err != nil {
			return "", err
		}
		plain, err := e.Ring.Open(sealed, purpose)
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

// pick returns the object of some members of a row.
func pick(row map[string]json.RawMessage, names []string) json.RawMessage {
	some := map[string]json.RawMessage{}
	for _, name := range names {
		some[name] = row[name]
	}
	raw, _ := json.Marshal(some) // of raw JSON
	return raw
}

// exportFile is an encrypted file that is being written. It gets its name when it is complete.
type exportFile struct {
	name, path string
	file       *os.File
	digest     hash.Hash // of what is in the file
	encrypter  io.WriteCloser
	buffer     *bufio.Writer
	rows, size int
	last       json.RawMessage // primary key of the last row
}

func (e *exporter) newFile(name string) (*exportFile, error) {
	f := &exportFile{name: name, path: filepath.Join(e.folder, name), digest: sha256.New()}
	var err error
	if f.file, err = os.OpenFile(f.path+".part", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600); err != nil {
		return nil, err
	}
	if f.encrypter, err = age.Encrypt(io.MultiWriter(f.file, f.digest), e.recipients...); err != nil {
		f.discard()
		return nil, err
	}
	f.buffer = bufio.NewWriter(f.encrypter)
	return f, nil
}

func (f *exportFile) close() error {
	err := errors.Join(f.buffer.Flush(), f.encrypter.Close(), f.file.Sync(), f.file.Close())
	if err != nil {
		return err
	}
	return os.Rename(f.path+".part", f.path)
}

// exported describes a file that is complete.
func (f *exportFile) exported() exportedFile {
	return exportedFile{Name: f.name, SHA256: hex.EncodeToString(f.digest.Sum(nil))}
}

// discard removes a file that is not complete.
func (f *exportFile) discard() { _ = errors.Join(f.file.Close(), os.Remove(f.path+".part")) }
