package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/doorward/doorward/deploy/standalone/sealed"
	"github.com/doorward/doorward/pkg/env"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/secure"
	application "github.com/doorward/doorward/services/application/app"
	directory "github.com/doorward/doorward/services/directory/app"
	"github.com/doorward/doorward/services/idsite"
	"github.com/doorward/doorward/services/mfa"
	"github.com/doorward/doorward/services/notification"
	"github.com/doorward/doorward/services/oauth"
)

// rotateConfig is what RotateKeys reads.
type rotateConfig struct {
	Databases Databases
	MasterKey secure.Secret `env:"DOORWARD_MASTER_KEY" required:"true" help:"master keys that encrypt secrets at rest, the new one first"`
}

// RotateVariables declares what RotateKeys reads.
func RotateVariables(source *env.Source) { source.Declare(new(rotateConfig)) }

// sealedSchemas returns the schemas of all services.
func (d Databases) sealedSchemas() []sealed.Schema {
	configs := d.Configs()
	return []sealed.Schema{
		sealed.NewSchema(configs[0], directory.Sealed), sealed.NewSchema(configs[1], application.Sealed),
		sealed.NewSchema(configs[2], oauth.Sealed), sealed.NewSchema(configs[3], mfa.Sealed),
		sealed.NewSchema(configs[4], notification.Sealed), sealed.NewSchema(configs[5], idsite.Sealed),
	}
}

// RotateKeys rotates the master key (key rotation): it encrypts every value that is sealed
// under a former master key again under the first key of DOORWARD_MASTER_KEY, and writes
// its progress to out. After an interruption another call continues. pkg/reseal does the
// work on the rows.
//
// Without a database in the environment RotateKeys works on the data folder, which no
// process may use meanwhile. There it first makes a new master key itself, unless values
// of an interrupted call remain under a former key.
func RotateKeys(ctx context.Context, source *env.Source, out io.Writer) (err error) {
	if !namesADatabase(source) {
		var cfg Config
		source.Load(&cfg)
		data, err := lockFolder(cfg.DataDir)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, data.Close()) }()
	}
	inFolder := !namesADatabase(source)
	cfg, stop, err := LoadWithDatabase[rotateConfig](ctx, source)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	ring, err := parseMasterKey(cfg.MasterKey)
	if err != nil {
		return err
	}
	var dbs []*pg.DB
	defer func() {
		for _, db := range dbs {
			db.Close()
		}
	}()
	schemas := cfg.Databases.sealedSchemas()
	remaining := make([]int64, len(schemas))
	countRemaining := func() (total int64, err error) {
		for i, schema := range schemas {
			if err := schema.Ensure(ctx, dbs[i], ring); err != nil {
				return 0, fmt.Errorf("%s: %w", schema.Config.Schema, err)
			}
			if remaining[i], err = schema.Remaining(ctx, dbs[i], ring); err != nil {
				return 0, fmt.Errorf("%s: %w", schema.Config.Schema, err)
			}
			total += remaining[i]
		}
		return total, nil
	}
	for _, schema := range schemas {
		db, err := pg.Open(ctx, schema.Config)
		if err != nil {
			return err
		}
		dbs = append(dbs, db)
	}
	total, err := countRemaining()
	if err != nil {
		return err
	}
	if inFolder && total == 0 {
		if ring, err = addMasterKey(source, cfg.MasterKey, out); err != nil {
			return err
		}
		if _, err = countRemaining(); err != nil { // all values, now that there is a new key
			return err
		}
	}
	for i, schema := range schemas {
		expected := remaining[i]
		err := schema.Reseal(ctx, dbs[i], ring, func(done int64) {
			_, _ = fmt.Fprintf(out, "%s: %d of %d\n", schema.Config.Schema, done, max(done, expected))
		})
		if err != nil {
			return fmt.Errorf("%s: %w; run the command again to go on", schema.Config.Schema, err)
		}
	}
	if total, err = countRemaining(); err != nil {
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

// addMasterKey puts a new master key before the active one in secrets.json, and drops the
// former keys, under which nothing is sealed any more.
func addMasterKey(source *env.Source, current secure.Secret, out io.Writer) (*secure.Keyring, error) {
	var cfg Config
	source.Load(&cfg)
	data := folder{path: cfg.DataDir}
	var secrets secretsFile
	if _, err := data.readJSON("secrets.json", &secrets); err != nil {
		return nil, err
	}
	active, _, _ := strings.Cut(current.Reveal(), ",")
	former, err := secure.ParseKeyring(secure.Secret(active))
	if err != nil {
		return nil, err
	}
	made := secure.NewMasterKey(newKeyID(time.Now(), former.KeyIDs()[0]))
	secrets.Master = made.Reveal() + "," + active
	ring, err := secure.ParseKeyring(secure.Secret(secrets.Master))
	if err != nil {
		return nil, err
	}
	if err := data.writeJSON("secrets.json", secrets); err != nil {
		return nil, err
	}
	name, _, _ := strings.Cut(made.Reveal(), ":")
	_, _ = fmt.Fprintf(out, "made the key %s\n", name)
	return ring, nil
}

// newKeyID returns the id of a key that is made now: the time in seconds and, of the n-th key of a second, -n. An id is
// never given again, because its canary stays (pkg/reseal/canary.go).
func newKeyID(now time.Time, former string) string {
	stamp := now.UTC().Format("k20060102150405")
	rest, isOfThisSecond := strings.CutPrefix(former, stamp)
	if !isOfThisSecond {
		return stamp
	}
	n, _ := strconv.Atoi(strings.TrimPrefix(rest, "-")) // 0: former is the first
	return fmt.Sprintf("%s-%d", stamp, max(n, 1)+1)
}
