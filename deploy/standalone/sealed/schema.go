// Package sealed is the schemas of the services with their sealed columns, for the commands of operators: the rotation of
// the master key, the doctor, backups, and exports of tenants.
package sealed

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/reseal"
	"github.com/doorward/doorward/pkg/secure"
)

// Schema is the schema of a service with its sealed columns: those whose values are
// encrypted under the master key.
type Schema struct {
	Config    pg.Config
	Verify    func(context.Context, *pg.DB, *secure.Keyring) error          // that the master key is theirs
	Ensure    func(context.Context, *pg.DB, *secure.Keyring) error          // likewise, and adds canaries
	Remaining func(context.Context, *pg.DB, *secure.Keyring) (int64, error) // values under a former master key
	Reseal    func(ctx context.Context, db *pg.DB, ring *secure.Keyring, report func(done int64)) error

	columns map[[2]string]column // by table and column
}

// column is a column of sealed values. A value is sealed for a purpose, which follows
// from the id of its row: the text, as PostgreSQL writes it, of the column idColumn.
type column struct {
	idColumn string
	purpose  func(id string) (string, error)
}

// NewSchema returns the schema with the sealed columns of its service.
func NewSchema[K any](config pg.Config, columns []secure.SealedColumn[K]) Schema {
	byName := map[[2]string]column{}
	for _, c := range columns {
		byName[[2]string{c.Table, c.Column}] = column{idColumn: c.Key, purpose: func(text string) (string, error) {
			var rowID K
			switch to := any(&rowID).(type) {
			case *string:
				*to = text
			case *id.ID:
				if err := ReadUUID(text, to); err != nil {
					return "", err
				}
			}
			return c.Purpose(rowID), nil
		}}
	}
	return Schema{
		Config: config, columns: byName,
		Verify: func(ctx context.Context, db *pg.DB, ring *secure.Keyring) error {
			_, err := reseal.VerifyMasterKey(ctx, db, ring, columns...)
			return err
		},
		Ensure: func(ctx context.Context, db *pg.DB, ring *secure.Keyring) error {
			return reseal.EnsureCanaries(ctx, db, ring, columns...)
		},
		Remaining: func(ctx context.Context, db *pg.DB, ring *secure.Keyring) (int64, error) {
			return reseal.Remaining(ctx, db, ring, columns...)
		},
		Reseal: func(ctx context.Context, db *pg.DB, ring *secure.Keyring, report func(int64)) error {
			return reseal.All(ctx, db, ring, report, columns...)
		},
	}
}

// IsSealed reports whether a column of a table has sealed values.
func (s Schema) IsSealed(table, column string) bool {
	_, ok := s.columns[[2]string{table, column}]
	return ok
}

// ReadUUID reads an id as PostgreSQL writes it.
func ReadUUID(text string, into *id.ID) error {
	raw, err := hex.DecodeString(strings.ReplaceAll(text, "-", ""))
	if err != nil || len(raw) != len(into) {
		return fmt.Errorf("%q is no UUID", text)
	}
	copy(into[:], raw)
	return nil
}

// Convert replaces the values of the sealed columns of a row, to decrypt or encrypt them.
func (s Schema) Convert(table string, row map[string]json.RawMessage,
	convert func(value, purpose string) (string, error),
) (changed bool, err error) {
	for name, column := range s.columns {
		if name[0] != table || string(row[name[1]]) == "null" {
			continue
		}
		var value, rowID string
		if err := errors.Join(json.Unmarshal(row[name[1]], &value), json.Unmarshal(row[column.idColumn], &rowID)); err != nil {
			return false, fmt.Errorf("%s: %w", name[1], err)
		}
		purpose, err := column.purpose(rowID)
		if err != nil {
			return false, err
		}
		if value, err = convert(value, purpose); err != nil {
			return false, fmt.Errorf("%s of %s: %w", name[1], rowID, err)
		}
		if row[name[1]], err = json.Marshal(value); err != nil {
			return false, err
		}
		changed = true
	}
	return changed, nil
}
