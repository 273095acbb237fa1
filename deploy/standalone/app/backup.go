package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"filippo.io/age"

	"github.com/doorward/doorward/pkg/env"
	"github.com/doorward/doorward/pkg/events/outbox"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/pkg/telemetry"
	directory "github.com/doorward/doorward/services/directory/store"
)

// The files of a backup. Those but backup.json have the suffix .age where they are encrypted.
const (
	backupFormat    = 1
	backupFile      = "backup.json" // written last: a folder with it is a whole backup
	dumpFile        = "database.dump"
	secretsName     = "secrets.json"
	archiveFile     = "files.tar"
	eventsFile      = "events.json" // in files.tar
	encryptedSuffix = ".age"
)

// backupTime is the form of the name of a backup's folder.
const backupTime = "20060102T150405Z"

// backupName is such a name.
var backupName = regexp.MustCompile(`^\d{8}T\d{6}Z$`)

// folderFiles are the files of a data folder that a backup has beside the secrets: keys of the bootstrap tenant, and
// certificates of the folder's own authority.
var folderFiles = []string{"apikey.json", "apiKey-*.properties", "curl.conf", "ca.pem", "ca-key.pem", "server.pem", "server-key.pem"}

// backupManifest is backup.json.
type backupManifest struct {
	Format     int              `json:"format"`
	Version    string           `json:"version"` // of the release that has made it
	CreatedAt  time.Time        `json:"createdAt"`
	Postgres   int              `json:"postgres"`   // major version
	Migrations map[string]int64 `json:"migrations"` // newest one of each schema
	KeyIDs     []string         `json:"keyIds"`     // of the master keys
	Files      []backupEntry    `json:"files"`
}

// backupEntry is a file of a backup, and the SHA-256 of its bytes as they are in the folder.
type backupEntry struct {
	Name   string `json:"name"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// BackupOptions are what a call of Backup chooses.
type BackupOptions struct {
	Recipients string // public keys of age; empty: the files are not encrypted
	Keep       int    // how many backups stay in the folder; 0: all
}

// backupConfig is what Backup reads, beside where Kafka is.
type backupConfig struct {
	Databases databases
	MasterKey secure.Secret `env:"DOORWARD_MASTER_KEY" required:"true" help:"master keys that encrypt secrets at rest"`
	Internal  secure.Secret `env:"DOORWARD_INTERNAL_SECRET" required:"true" help:"secret that all processes of the deployment share"`
}

// BackupVariables declares what Backup, RecordBackup and Restore read.
func BackupVariables(source *env.Source) {
	source.Declare(new(backupConfig))
	DeadLetterVariables(source)
}

// errNoFolder is the error of Backup and Restore for a deployment with a database of its own.
const errNoFolder = usageError("only the PostgreSQL of a data folder is backed up and restored here, and the environment names " +
	"a database: docs/backup.md says how to back that up")

// Backup makes a backup of a data folder, whose process may run, in a new folder below parent (docs/backup.md). It
// is consistent: one snapshot of all schemas, with the events that had left it for Kafka and were not handled. Only a
// whole one stays.
func Backup(ctx context.Context, source *env.Source, parent string, options BackupOptions, asJSON bool, out io.Writer) (err error) {
	recipients, err := parseRecipients(options.Recipients)
	if err != nil {
		return err
	}
	if namesADatabase(source) {
		return errNoFolder
	}
	release, err := holdFolder(source)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, release()) }()
	stop, err := resolveDatabase(ctx, source)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	b := &backup{parent: parent, recipients: recipients, cfg: env.Load[backupConfig](source), source: source}
	if err := source.Err(); err != nil {
		return err
	}
	if b.events, err = openInspector(source); err != nil {
		return err
	}
	defer b.events.Close()
	if err := b.make(ctx); err != nil {
		if b.folder != "" {
			err = errors.Join(err, os.RemoveAll(b.folder))
		}
		return err
	}
	if options.Keep > 0 {
		if err := dropBackups(parent, options.Keep); err != nil {
			return err
		}
	}
	if !asJSON {
		_, _ = fmt.Fprintln(out, b.folder)
		return nil
	}
	return json.NewEncoder(out).Encode(struct {
		Folder string `json:"folder"`
		backupManifest
	}{b.folder, b.backupManifest})
}

func parseRecipients(text string) ([]age.Recipient, error) {
	if text == "" {
		return nil, nil
	}
	recipients, err := age.ParseRecipients(strings.NewReader(text))
	if err != nil {
		return nil, usageError(fmt.Sprintf(
			"the recipient is no public key of age, such as age1…; doorward tenant key makes one: %v", err))
	}
	return recipients, nil
}

// holdFolder locks the data folder if no process runs on it, and opens its broker, until release.
func holdFolder(source *env.Source) (release func() error, err error) {
	dir := FromEnv(source).DataDir
	release = func() error { return nil }
	if _, err := os.Stat(filepath.Join(dir, secretsName)); err != nil {
		return release, nil // resolveDatabase says what is wrong
	}
	if isFolderInUse(source) {
		return release, resolveBroker(source)
	}
	data, err := lockFolder(dir)
	if err != nil || source.Has("KAFKA_BROKERS") {
		return func() error { return data.Close() }, err
	}
	password := secure.Token(passwordLength)
	cluster, err := openBroker(data.join("kafka"), password)
	if err != nil {
		return nil, errors.Join(err, data.Close())
	}
	broker{cluster.ListenAddrs()[0], password.Reveal()}.setVariables(source)
	return func() error {
		cluster.Close()
		return data.Close()
	}, nil
}

// backup is a backup while it is made.
type backup struct {
	backupManifest
	parent     string
	folder     string // empty until it is made
	recipients []age.Recipient
	cfg        backupConfig
	source     *env.Source
	events     *outbox.Inspector
}

func (b *backup) make(ctx context.Context) error {
	// A session without the role of a service reads the schemas of all.
	db, err := pg.OpenWithoutMigrating(ctx, pg.Config{URL: b.cfg.Databases.Directory, Schema: "public"})
	if err != nil {
		return err
	}
	defer db.Close()
	ring, err := secure.ParseKeyring(b.cfg.MasterKey)
	if err != nil {
		return fmt.Errorf("DOORWARD_MASTER_KEY: %w", err)
	}
	if err := os.MkdirAll(b.parent, 0o700); err != nil {
		return err
	}
	now := time.Now().UTC().Truncate(time.Second)
	path := filepath.Join(b.parent, now.Format(backupTime))
	if err := os.Mkdir(path, 0o700); err != nil {
		return fmt.Errorf("make the folder of the backup: %w", err)
	}
	b.folder = path
	b.backupManifest = backupManifest{Format: backupFormat, Version: telemetry.Version(), CreatedAt: now, KeyIDs: ring.KeyIDs()}
	if err := b.readMigrations(ctx, db); err != nil {
		return err
	}
	events, err := b.dump(ctx, db)
	if err != nil {
		return err
	}
	secrets := secretsFile{Internal: b.cfg.Internal.Reveal(), Master: b.cfg.MasterKey.Reveal()}
	if err := b.add(secretsName, func(w io.Writer) error { return json.NewEncoder(w).Encode(secrets) }); err != nil {
		return err
	}
	if err := b.add(archiveFile, func(w io.Writer) error { return b.archive(w, events) }); err != nil {
		return err
	}
	to := folder{path: b.folder}
	if err := to.writeJSON(backupFile, b.backupManifest); err != nil {
		return err
	}
	return recordBackup(ctx, b.cfg.Databases.Directory, now)
}

// readMigrations notes the newest migration of each schema.
func (b *backup) readMigrations(ctx context.Context, db *pg.DB) error {
	b.Migrations = map[string]int64{}
	for _, schema := range schemaNames(b.cfg.Databases) {
		newest, err := pg.Value[int64](ctx, db, `SELECT coalesce(max(version_id), 0) FROM `+schema+`.migrations WHERE is_applied`)
		if err != nil {
			return err
		}
		b.Migrations[schema] = newest
	}
	return nil
}

func schemaNames(d databases) (names []string) {
	for _, schema := range d.configs() {
		names = append(names, schema.Schema)
	}
	return names
}

// RecordBackup records that a backup which another tool has made is complete now.
func RecordBackup(ctx context.Context, source *env.Source, asJSON bool, out io.Writer) (err error) {
	stop, err := resolveDatabase(ctx, source)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	var cfg struct {
		Directory secure.Secret `env:"DIRECTORY_DATABASE_URL,DATABASE_URL" required:"true" help:"PostgreSQL of the directory service"`
	}
	source.Load(&cfg)
	if err := source.Err(); err != nil {
		return usageError(err.Error())
	}
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
	return directory.New(db, time.Now).Tx(ctx, func(tx *directory.Tx) error { return tx.RecordBackup(ctx, at) })
}

// wholeBackups returns the folders of the whole backups below a folder, the oldest first.
func wholeBackups(parent string) (whole, parts []string, err error) {
	entries, err := os.ReadDir(parent)
	if err != nil {
		return nil, nil, err
	}
	for _, entry := range entries {
		if !backupName.MatchString(entry.Name()) {
			continue
		}
		folder := filepath.Join(parent, entry.Name())
		if _, err := os.Stat(filepath.Join(folder, backupFile)); err != nil {
			parts = append(parts, folder)
			continue
		}
		whole = append(whole, folder)
	}
	return whole, parts, nil
}

// dropBackups removes all but the newest whole backups, and what interrupted ones have left.
func dropBackups(parent string, keep int) error {
	whole, parts, err := wholeBackups(parent)
	if err != nil {
		return err
	}
	newest := filepath.Base(whole[len(whole)-1])
	for _, folder := range parts {
		if filepath.Base(folder) < newest { // a later one may be in the making
			err = errors.Join(err, os.RemoveAll(folder))
		}
	}
	for _, folder := range whole[:max(0, len(whole)-keep)] {
		err = errors.Join(err, os.RemoveAll(folder))
	}
	return err
}
