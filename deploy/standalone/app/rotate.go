package app

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/doorward/doorward/pkg/env"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/reseal"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/application"
	"github.com/doorward/doorward/services/directory"
	"github.com/doorward/doorward/services/idsite"
	"github.com/doorward/doorward/services/mfa"
	"github.com/doorward/doorward/services/notification"
	"github.com/doorward/doorward/services/oauth"
)

// rotateConfig is what RotateKeys reads.
type rotateConfig struct {
	Databases databases
	MasterKey secure.Secret `env:"DOORWARD_MASTER_KEY" required:"true" help:"master keys that encrypt secrets at rest, the new one first"`
}

// RotateVariables declares what RotateKeys reads.
func RotateVariables(source *env.Source) { source.Declare(new(rotateConfig)) }

// sealedSchema is what a service keeps sealed.
type sealedSchema struct {
	config pg.Config
	left   func(context.Context, *pg.DB, *secure.Keyring) (int64, error)
	reseal func(ctx context.Context, db *pg.DB, ring *secure.Keyring, report func(done int64)) error

	columns map[[2]string]sealedColumn // by table and column
}

// sealedColumn is a column of sealed values: the column of the key of its rows, and
// what the value in the row of a key is sealed for. The key is as PostgreSQL writes it.
type sealedColumn struct {
	key     string
	purpose func(key string) (string, error)
}

func sealed[K any](config pg.Config, columns []secure.SealedColumn[K]) sealedSchema {
	byName := map[[2]string]sealedColumn{}
	for _, c := range columns {
		byName[[2]string{c.Table, c.Column}] = sealedColumn{key: c.Key, purpose: func(text string) (string, error) {
			var key K
			switch to := any(&key).(type) {
			case *string:
				*to = text
			case *id.ID:
				if err := readUUID(text, to); err != nil {
					return "", err
				}
			}
			return c.Purpose(key), nil
		}}
	}
	return sealedSchema{
		config: config, columns: byName,
		left: func(ctx context.Context, db *pg.DB, ring *secure.Keyring) (int64, error) {
			return reseal.Remaining(ctx, db, ring, columns...)
		},
		reseal: func(ctx context.Context, db *pg.DB, ring *secure.Keyring, report func(int64)) error {
			return reseal.All(ctx, db, ring, report, columns...)
		},
	}
}

// readUUID reads an id as PostgreSQL writes it.
func readUUID(text string, into *id.ID) error {
	raw, err := hex.DecodeString(strings.ReplaceAll(text, "-", ""))
	if err != nil || len(raw) != len(into) {
		return fmt.Errorf("%q is no UUID", text)
	}
	copy(into[:], raw)
	return nil
}

// sealed returns the schemas, with what each keeps sealed.
func (d databases) sealed() []sealedSchema {
	all := d.configs()
	return []sealedSchema{
		sealed(all[0], directory.Sealed), sealed(all[1], application.Sealed), sealed(all[2], oauth.Sealed),
		sealed(all[3], mfa.Sealed), sealed(all[4], notification.Sealed), sealed(all[5], idsite.Sealed),
	}
}

// RotateKeys is the key rotation of the master key. It encrypts (seals) all secrets that are encrypted
// under a former key again under the first key of DOORWARD_MASTER_KEY (the rows: pkg/reseal), and
// writes its progress to out. After an interruption the next call continues. In a data folder, which
// no process may use meanwhile, it first makes a new key, unless it continues an earlier call.
func RotateKeys(ctx context.Context, source *env.Source, out io.Writer) (err error) {
	if !namesDatabase(source) {
		var cfg Config
		source.Load(&cfg)
		locked, err := openFolder(cfg.DataDir)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, locked.Close()) }()
	}
	inFolder := !namesDatabase(source)
	stop, err := openData(ctx, source)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	var cfg rotateConfig
	source.Load(&cfg)
	if err := source.Err(); err != nil {
		return err
	}
	ring, err := secure.ParseKeyring(cfg.MasterKey)
	if err != nil {
		return fmt.Errorf("DOORWARD_MASTER_KEY: %w", err)
	}
	var dbs []*pg.DB
	defer func() {
		for _, db := range dbs {
			db.Close()
		}
	}()
	schemas := cfg.Databases.sealed()
	lefts := make([]int64, len(schemas))
	count := func() (total int64, err error) {
		for i, schema := range schemas {
			if lefts[i], err = schema.left(ctx, dbs[i], ring); err != nil {
				return 0, fmt.Errorf("%s: %w", schema.config.Schema, err)
			}
			total += lefts[i]
		}
		return total, nil
	}
	for _, schema := range schemas {
		db, err := pg.Open(ctx, schema.config)
		if err != nil {
			return err
		}
		dbs = append(dbs, db)
	}
	total, err := count()
	if err != nil {
		return err
	}
	if inFolder && total == 0 {
		if ring, err = newKeyInFolder(source, cfg.MasterKey, out); err != nil {
			return err
		}
		if _, err = count(); err != nil { // the new key leaves all to be sealed
			return err
		}
	}
	for i, schema := range schemas {
		of := lefts[i]
		err := schema.reseal(ctx, dbs[i], ring, func(done int64) {
			_, _ = fmt.Fprintf(out, "%s: %d of %d\n", schema.config.Schema, done, max(done, of))
		})
		if err != nil {
			return fmt.Errorf("%s: %w; run the command again to go on", schema.config.Schema, err)
		}
	}
	if total, err = count(); err != nil {
		return err
	}
	if total > 0 {
		return fmt.Errorf(
			"%d secrets were sealed under a former key meanwhile: restart the services with the new key first, and run the command again", total)
	}
	_, _ = fmt.Fprintln(out,
		"all secrets are sealed under the first key; the others can be dropped once no event waits that was sealed under them")
	return nil
}

// newKeyInFolder puts a new master key in front of the active one, and drops those
// before it, under which nothing is sealed.
func newKeyInFolder(source *env.Source, current secure.Secret, out io.Writer) (*secure.Keyring, error) {
	var cfg Config
	source.Load(&cfg)
	at := folder{path: cfg.DataDir}
	var own shared
	if _, err := at.readJSON("secrets.json", &own); err != nil {
		return nil, err
	}
	active, _, _ := strings.Cut(current.Reveal(), ",")
	made := secure.NewMasterKey(time.Now().UTC().Format("k20060102150405"))
	own.Master = made.Reveal() + "," + active
	ring, err := secure.ParseKeyring(secure.Secret(own.Master))
	if err != nil {
		return nil, err
	}
	if err := at.writeJSON("secrets.json", own); err != nil {
		return nil, err
	}
	name, _, _ := strings.Cut(made.Reveal(), ":")
	_, _ = fmt.Fprintf(out, "made the key %s\n", name)
	return ring, nil
}
