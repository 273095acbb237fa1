package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"filippo.io/age"

	"github.com/doorward/doorward/deploy/standalone/backup"
	"github.com/doorward/doorward/deploy/standalone/privateserver"
	"github.com/doorward/doorward/deploy/standalone/sealed"
	"github.com/doorward/doorward/pkg/backuprecord"
	"github.com/doorward/doorward/pkg/env"
	"github.com/doorward/doorward/pkg/events/outbox"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/secure"
	directory "github.com/doorward/doorward/services/directory/store"
)

// BackupOptions are what a call of Backup chooses.
type BackupOptions struct {
	Recipients string // public keys of age; empty: the files are not encrypted
	Keep       int    // how many backups stay in the folder; 0: all
}

// backupConfig is what Backup reads, beside where Kafka is.
type backupConfig struct {
	Databases Databases
	MasterKey secure.Secret `env:"DOORWARD_MASTER_KEY" required:"true" help:"master keys that encrypt secrets at rest"`
	Internal  secure.Secret `env:"DOORWARD_INTERNAL_SECRET" required:"true" help:"secret that all processes of the deployment share"`
}

// BackupVariables declares what Backup, RecordBackup and Restore read.
func BackupVariables(source *env.Source) {
	source.Declare(new(backupConfig))
	DeadLetterVariables(source)
}

// errNoFolder is the error of Backup and Restore for a deployment with a database of its own.
const errNoFolder = UsageError("only a data folder with a PostgreSQL of its own is backed up and restored here, and the environment " +
	"names a database: docs/backup.md says how to back that up")

// CheckFolder returns a usage error where the environment names a database, so that Backup and Restore have nothing to
// work on.
func CheckFolder(source *env.Source) error {
	if namesADatabase(source) {
		return errNoFolder
	}
	return nil
}

// Backup makes a backup of a data folder, whose process may run, in a new folder below parent (docs/backup.md).
func Backup(ctx context.Context, source *env.Source, parent string, options BackupOptions, asJSON bool, out io.Writer) (err error) {
	var recipients []age.Recipient
	if options.Recipients != "" {
		if recipients, err = parseRecipients(options.Recipients); err != nil {
			return err
		}
	}
	if err := CheckFolder(source); err != nil {
		return err
	}
	release, err := openFolderBroker(source)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, release()) }()
	stop, err := resolveDatabase(ctx, source)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	cfg, own := env.Load[backupConfig](source), env.Load[Config](source)
	if err := source.Err(); err != nil {
		return err
	}
	inspector, err := openInspector(source)
	if err != nil {
		return err
	}
	defer inspector.Close()
	folder, made, err := backup.Make(ctx, backup.Source{
		DataDir: own.DataDir, PostgresBin: own.PostgresBin, Database: cfg.Databases.Directory, Schemas: cfg.Databases.schemas(),
		Events: inspector, MasterKey: cfg.MasterKey,
		Secrets: secretsFile{Internal: cfg.Internal.Reveal(), Master: cfg.MasterKey.Reveal()},
	}, parent, recipients)
	if err != nil {
		return err
	}
	if err := recordBackup(ctx, cfg.Databases.Directory, made.CreatedAt); err != nil {
		return errors.Join(err, os.RemoveAll(folder))
	}
	if options.Keep > 0 {
		if err := backup.Keep(parent, options.Keep); err != nil {
			return err
		}
	}
	if !asJSON {
		_, _ = fmt.Fprintln(out, folder)
		return nil
	}
	return json.NewEncoder(out).Encode(struct {
		Folder string `json:"folder"`
		backup.Manifest
	}{folder, made})
}

func (d Databases) schemas() (names []string) {
	for _, schema := range d.Configs() {
		names = append(names, schema.Schema)
	}
	return names
}

// openFolderBroker sets the variables KAFKA_… of the source to the broker of the data folder. If no process runs on
// that, it locks it and starts the broker, until release.
func openFolderBroker(source *env.Source) (release func() error, err error) {
	dir := FromEnv(source).DataDir
	nothing := func() error { return nil }
	if _, err := os.Stat(filepath.Join(dir, "secrets.json")); err != nil {
		return nothing, nil // resolveDatabase says what is wrong
	}
	if isFolderInUse(source) {
		return nothing, resolveBroker(source)
	}
	data, err := lockFolder(dir)
	if err != nil || source.Has("KAFKA_BROKERS") {
		return func() error { return data.Close() }, err
	}
	password := secure.Token(passwordLength)
	cluster, err := privateserver.OpenBroker(data.join("kafka"), password)
	if err != nil {
		return nil, errors.Join(err, data.Close())
	}
	broker{cluster.ListenAddrs()[0], password.Reveal()}.setVariables(source)
	return func() error {
		cluster.Close()
		return data.Close()
	}, nil
}

// RecordBackup records that a backup which another tool has made is complete now.
func RecordBackup(ctx context.Context, source *env.Source, asJSON bool, out io.Writer) (err error) {
	cfg, stop, err := LoadWithDatabase[tenantStatusConfig](ctx, source)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	at := time.Now().UTC().Truncate(time.Second)
	if err := recordBackup(ctx, cfg.Directory, at); err != nil {
		return err
	}
	if asJSON {
		return json.NewEncoder(out).Encode(map[string]time.Time{"recordedAt": at})
	}
	_, _ = fmt.Fprintln(out, "recorded", at.Format(time.RFC3339))
	return nil
}

func recordBackup(ctx context.Context, url secure.Secret, at time.Time) error {
	db, err := pg.OpenWithoutMigrating(ctx, directory.Config(url))
	if err != nil {
		return err
	}
	defer db.Close()
	return backuprecord.Record(ctx, db, at)
}

// Restore makes a data folder, which is absent or empty, of a backup: of the newest whole one in the folder from, or
// of from itself. identityFile has the private keys of age of an encrypted one. Where it fails it leaves nothing.
func Restore(ctx context.Context, source *env.Source, from, identityFile string, out io.Writer) error {
	cfg := FromEnv(source)
	if err := CheckFolder(source); err != nil {
		return err
	}
	opened, err := backup.Open(from, identityFile)
	if err != nil {
		return err
	}
	_, err = os.Stat(cfg.DataDir)
	absent := errors.Is(err, os.ErrNotExist)
	empty, err := backup.IsEmpty(cfg.DataDir)
	if err != nil {
		return err
	}
	if !empty {
		return fmt.Errorf("the data folder %s is not empty: set DOORWARD_DATA_DIR to another, or move it away", cfg.DataDir)
	}
	data, err := lockFolder(cfg.DataDir)
	if err != nil {
		return err
	}
	r := restored{createdAt: opened.CreatedAt}
	err = opened.Restore(ctx, backup.Target{
		DataDir: data.path, PostgresBin: cfg.PostgresBin, Secrets: &r.secrets, Prepare: r.prepare, Check: r.check,
	})
	if err != nil {
		err = errors.Join(err, os.Remove(data.join("lock")), data.Close())
		if absent {
			err = errors.Join(err, os.Remove(data.path))
		}
		return err
	}
	_, _ = fmt.Fprintf(out, "restored %s: %d tenants\n", opened.CreatedAt.Format(time.RFC3339), r.tenants)
	return data.Close()
}

// restored is the database of a restore.
type restored struct {
	createdAt time.Time
	secrets   secretsFile
	tenants   int
}

func (r *restored) prepare(ctx context.Context, url string) error {
	for _, schema := range allInOneDatabase(url).Configs() {
		if err := pg.EnsureRole(ctx, schema); err != nil {
			return err
		}
	}
	return nil
}

// check checks the migrations and the master key of each schema, and puts the events of its service back.
func (r *restored) check(ctx context.Context, url string, events []outbox.SentEvent) error {
	ring, err := secure.ParseKeyring(secure.Secret(r.secrets.Master))
	if err != nil {
		return fmt.Errorf("master keys of the backup: %w", err)
	}
	for _, schema := range allInOneDatabase(url).sealedSchemas() {
		if err := r.checkSchema(ctx, schema, ring, events); err != nil {
			return fmt.Errorf("%s: %w", schema.Config.Schema, err)
		}
	}
	return recordBackup(ctx, secure.Secret(url), r.createdAt)
}

func (r *restored) checkSchema(ctx context.Context, schema sealed.Schema, ring *secure.Keyring, events []outbox.SentEvent) error {
	state, err := pg.ReadMigrations(ctx, schema.Config)
	if err != nil {
		return err
	}
	if len(state.Unknown) > 0 {
		return fmt.Errorf("a newer release has made the backup: this one does not know the migrations %s",
			strings.Join(state.Unknown, ", "))
	}
	db, err := pg.OpenWithoutMigrating(ctx, schema.Config)
	if err != nil {
		return err
	}
	defer db.Close()
	if err := schema.Verify(ctx, db, ring); err != nil {
		return err
	}
	if schema.Config.Schema == "directory" {
		if r.tenants, err = pg.Value[int](ctx, db, `SELECT count(*) FROM tenants WHERE status <> 'DELETED'`); err != nil {
			return err
		}
	}
	events = slices.DeleteFunc(slices.Clone(events), func(e outbox.SentEvent) bool { return e.Service != schema.Config.Schema })
	if len(events) == 0 {
		return nil
	}
	return db.InTx(ctx, func(tx *pg.Tx) error { return outbox.PutBack(ctx, tx, events) })
}
