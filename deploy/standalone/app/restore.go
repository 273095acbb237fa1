package app

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
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

	"github.com/doorward/doorward/pkg/env"
	"github.com/doorward/doorward/pkg/events/outbox"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/pg/private"
	"github.com/doorward/doorward/pkg/secure"
)

// restoreFolder is the folder in the data folder in which a restore is made.
const restoreFolder = ".restore"

// Restore makes a data folder, which is absent or empty, of a backup: of the newest whole one in the folder from, or
// of from itself. identityFile has the private keys of age of an encrypted one. Where it fails it leaves nothing.
func Restore(ctx context.Context, source *env.Source, from, identityFile string, out io.Writer) (err error) {
	cfg := FromEnv(source)
	if namesADatabase(source) {
		return errNoFolder
	}
	r := &restore{cfg: cfg}
	if err := r.read(from, identityFile); err != nil {
		return err
	}
	data, remove, err := lockEmptyFolder(cfg.DataDir)
	if err != nil {
		return err
	}
	r.to = folder{path: data.join(restoreFolder)}
	tenants, err := r.run(ctx)
	if err == nil {
		err = r.move(data.path)
	}
	if err != nil {
		return errors.Join(err, r.remove(context.WithoutCancel(ctx)), remove())
	}
	if err := errors.Join(os.Remove(r.to.path), data.Close()); err != nil {
		return err
	}
	_, _ = fmt.Fprintf(out, "restored %s: %d tenants\n", r.CreatedAt.Format(time.RFC3339), tenants)
	return nil
}

// lockEmptyFolder makes and locks a data folder that is absent or empty. remove undoes that.
func lockEmptyFolder(path string) (data *folder, remove func() error, err error) {
	entries, err := os.ReadDir(path)
	absent := errors.Is(err, os.ErrNotExist)
	if err != nil && !absent {
		return nil, nil, err
	}
	for _, entry := range entries {
		if entry.Name() != "lock" && entry.Name() != restoreFolder { // of a restore that was killed
			return nil, nil, fmt.Errorf("the data folder %s is not empty: set DOORWARD_DATA_DIR to another, or move it away", path)
		}
	}
	if data, err = lockFolder(path); err != nil {
		return nil, nil, err
	}
	return data, func() error {
		err := errors.Join(os.Remove(data.join("lock")), data.Close())
		if absent {
			err = errors.Join(err, os.Remove(data.path))
		}
		return err
	}, nil
}

// restore is a backup that is being restored.
type restore struct {
	backupManifest
	cfg        Config
	from       string
	identities []age.Identity
	secrets    secretsFile
	to         folder
	events     []outbox.SentEvent
}

// read finds the backup and checks what can be checked before anything is written.
func (r *restore) read(from, identityFile string) error {
	r.from = from
	if _, err := os.Stat(filepath.Join(from, backupFile)); err != nil {
		whole, _, err := wholeBackups(from)
		if err != nil {
			return fmt.Errorf("find a backup: %w", err)
		}
		if len(whole) == 0 {
			return fmt.Errorf("%s holds no whole backup: none has the file %s", from, backupFile)
		}
		r.from = whole[len(whole)-1]
	}
	backupFolder := folder{path: r.from}
	if _, err := backupFolder.readJSON(backupFile, &r.backupManifest); err != nil {
		return err
	}
	switch {
	case r.Format > backupFormat:
		return fmt.Errorf("%s has the format %d; this release knows %d", r.from, r.Format, backupFormat)
	case pg.IsNewerRelease(r.Version):
		return fmt.Errorf("%s was made by release %s, which is newer than this one", r.from, r.Version)
	}
	if err := r.readIdentities(identityFile); err != nil {
		return err
	}
	return r.verify()
}

func (r *restore) readIdentities(file string) error {
	encrypted := slices.ContainsFunc(r.Files, func(f backupEntry) bool { return strings.HasSuffix(f.Name, encryptedSuffix) })
	if !encrypted {
		return nil
	}
	if file == "" {
		return fmt.Errorf("%s is encrypted: name the file of the age private key with --identity", r.from)
	}
	content, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	r.identities, err = age.ParseIdentities(bytes.NewReader(content))
	if err != nil {
		return fmt.Errorf("read the age private key: %w", err)
	}
	return nil
}

// verify checks that each file is there, and as it was written.
func (r *restore) verify() error {
	for _, name := range []string{dumpFile, secretsName, archiveFile} {
		if _, err := r.entry(name); err != nil {
			return err
		}
	}
	for _, f := range r.Files {
		if f.Name != filepath.Base(f.Name) {
			return fmt.Errorf("%s names a file outside of the backup, %q", backupFile, f.Name)
		}
		file, err := os.Open(filepath.Join(r.from, f.Name))
		if err != nil {
			return err
		}
		sum := sha256.New()
		n, err := io.Copy(sum, file)
		if err := errors.Join(err, file.Close()); err != nil {
			return fmt.Errorf("read %s: %w", f.Name, err)
		}
		if n != f.Bytes || hex.EncodeToString(sum.Sum(nil)) != f.SHA256 {
			return fmt.Errorf("%s in %s is not as it was written: its checksum is another", f.Name, r.from)
		}
	}
	return nil
}

// entry returns the file with a name, encrypted or not.
func (r *restore) entry(name string) (string, error) {
	for _, f := range r.Files {
		if strings.TrimSuffix(f.Name, encryptedSuffix) == name {
			return f.Name, nil
		}
	}
	return "", fmt.Errorf("%s has no %s", r.from, name)
}

// open calls read with the content of a file of the backup.
func (r *restore) open(name string, read func(io.Reader) error) error {
	entry, err := r.entry(name)
	if err != nil {
		return err
	}
	file, err := os.Open(filepath.Join(r.from, entry))
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	var content io.Reader = file
	if entry != name {
		if content, err = age.Decrypt(file, r.identities...); err != nil {
			return fmt.Errorf("decrypt %s: %w", entry, err)
		}
	}
	if err := read(content); err != nil {
		return fmt.Errorf("%s: %w", entry, err)
	}
	return nil
}

// run writes the new data folder, and returns how many tenants it has.
func (r *restore) run(ctx context.Context) (tenants int, err error) {
	if err := r.remove(ctx); err != nil { // what a restore that was killed has left
		return 0, err
	}
	if err := os.Mkdir(r.to.path, 0o755); err != nil { // as lockFolder does
		return 0, err
	}
	err = r.open(secretsName, func(in io.Reader) error { return json.NewDecoder(in).Decode(&r.secrets) })
	if err != nil {
		return 0, err
	}
	if err := r.to.writeJSON(secretsName, r.secrets); err != nil {
		return 0, err
	}
	if err := r.open(archiveFile, r.unpack); err != nil {
		return 0, err
	}
	dir := r.to.join("postgres")
	server, err := private.Start(ctx, private.Config{Dir: dir, Bin: r.cfg.PostgresBin, Durable: true})
	if err != nil {
		return 0, err
	}
	tenants, err = r.load(ctx, dir, server.URL(private.Database))
	return tenants, errors.Join(err, server.Stop(context.WithoutCancel(ctx)))
}

// remove removes the folder in which the restore is made.
func (r *restore) remove(ctx context.Context) error {
	return errors.Join(private.Remove(ctx, r.to.join("postgres")), os.RemoveAll(r.to.path))
}

// unpack writes the files of files.tar into the data folder.
func (r *restore) unpack(in io.Reader) error {
	archive := tar.NewReader(in)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		content, err := io.ReadAll(archive)
		if err != nil {
			return err
		}
		switch {
		case header.Name == eventsFile:
			err = json.Unmarshal(content, &r.events)
		case isFolderFile(header.Name):
			err = r.to.write(header.Name, content)
		default:
			err = fmt.Errorf("%q is no file of a data folder", header.Name)
		}
		if err != nil {
			return err
		}
	}
}

func isFolderFile(name string) bool {
	return slices.ContainsFunc(folderFiles, func(pattern string) bool {
		matches, _ := filepath.Match(pattern, name) // the only error is a bad pattern
		return matches
	})
}

// load fills the new database and checks it against the secrets and this release.
func (r *restore) load(ctx context.Context, dir, url string) (tenants int, err error) {
	bin, major, err := private.ProgramsOf(dir, r.cfg.PostgresBin)
	if err != nil {
		return 0, err
	}
	if r.Postgres > major {
		return 0, fmt.Errorf("the backup was made with PostgreSQL %d, and this machine has %d", r.Postgres, major)
	}
	ring, err := secure.ParseKeyring(secure.Secret(r.secrets.Master))
	if err != nil {
		return 0, fmt.Errorf("%s: %w", secretsName, err)
	}
	schemas := allInOneDatabase(url).sealedSchemas()
	for _, schema := range schemas {
		if err := pg.EnsureRole(ctx, schema.config); err != nil {
			return 0, err
		}
	}
	err = r.open(dumpFile, func(in io.Reader) error {
		return runProgram(ctx, filepath.Join(bin, "pg_restore"), in, io.Discard, "--exit-on-error", "--single-transaction",
			"--no-password", "--dbname="+url)
	})
	if err != nil {
		return 0, err
	}
	for _, schema := range schemas {
		n, err := r.check(ctx, schema, ring)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", schema.config.Schema, err)
		}
		tenants += n
	}
	return tenants, nil
}

// check checks a restored schema and puts the events of its service back into its outbox. It returns the tenants that
// the schema lists.
func (r *restore) check(ctx context.Context, schema sealedSchema, ring *secure.Keyring) (tenants int, err error) {
	state, err := pg.ReadMigrations(ctx, schema.config)
	if err != nil {
		return 0, err
	}
	if len(state.Unknown) > 0 {
		return 0, fmt.Errorf("a newer release has made the backup: this one does not know the migrations %s",
			strings.Join(state.Unknown, ", "))
	}
	db, err := pg.OpenWithoutMigrating(ctx, schema.config)
	if err != nil {
		return 0, err
	}
	defer db.Close()
	if err := schema.verify(ctx, db, ring); err != nil {
		return 0, err
	}
	events := slices.DeleteFunc(slices.Clone(r.events), func(e outbox.SentEvent) bool { return e.Service != schema.config.Schema })
	if len(events) > 0 {
		if err := db.InTx(ctx, func(tx *pg.Tx) error { return outbox.PutBack(ctx, tx, events) }); err != nil {
			return 0, err
		}
	}
	if schema.config.Schema != "directory" {
		return 0, nil
	}
	if err := recordBackup(ctx, schema.config.URL, r.CreatedAt); err != nil {
		return 0, err
	}
	return pg.Value[int](ctx, db, `SELECT count(*) FROM tenants`)
}

// move moves the complete folder to its place, the secrets last: without them it is no data folder.
func (r *restore) move(to string) error {
	entries, err := os.ReadDir(r.to.path)
	if err != nil {
		return err
	}
	var names []string
	for _, entry := range entries {
		if entry.Name() != secretsName {
			names = append(names, entry.Name())
		}
	}
	for _, name := range append(names, secretsName) {
		if err := os.Rename(r.to.join(name), filepath.Join(to, name)); err != nil {
			return err
		}
	}
	return nil
}
