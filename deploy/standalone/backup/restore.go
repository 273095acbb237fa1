package backup

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

	"filippo.io/age"

	"github.com/doorward/doorward/pkg/events/outbox"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/pg/private"
)

// makingFolder is the folder in the data folder in which a restore is made.
const makingFolder = ".restore"

// Reader is a whole backup.
type Reader struct {
	Manifest
	folder     string
	identities []age.Identity
}

// Open opens the newest whole backup in a folder, or the backup that the folder is, and checks its format, its
// release, and that each file is there and as it was written. identityFile has the private keys of age of an
// encrypted one.
func Open(folder, identityFile string) (*Reader, error) {
	r := &Reader{folder: folder}
	if _, err := os.Stat(filepath.Join(folder, manifestFile)); err != nil {
		whole, _, err := list(folder)
		if err != nil {
			return nil, fmt.Errorf("find a backup: %w", err)
		}
		if len(whole) == 0 {
			return nil, fmt.Errorf("%s holds no whole backup: none has the file %s", folder, manifestFile)
		}
		r.folder = whole[len(whole)-1]
	}
	content, err := os.ReadFile(filepath.Join(r.folder, manifestFile))
	if err == nil {
		err = json.Unmarshal(content, &r.Manifest)
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", manifestFile, err)
	case r.Format > format:
		return nil, fmt.Errorf("%s has the format %d; this release knows %d", r.folder, r.Format, format)
	case pg.IsNewerRelease(r.Version):
		return nil, fmt.Errorf("%s was made by release %s, which is newer than this one", r.folder, r.Version)
	}
	if err := r.readIdentities(identityFile); err != nil {
		return nil, err
	}
	return r, r.verify()
}

func (r *Reader) readIdentities(file string) error {
	if !slices.ContainsFunc(r.Files, func(f File) bool { return strings.HasSuffix(f.Name, encryptedSuffix) }) {
		return nil
	}
	if file == "" {
		return fmt.Errorf("%s is encrypted: name the file of the age private key with --identity", r.folder)
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

func (r *Reader) verify() error {
	for _, name := range []string{dumpFile, secretsFile, archiveFile} {
		if _, err := r.file(name); err != nil {
			return err
		}
	}
	for _, f := range r.Files {
		if f.Name != filepath.Base(f.Name) {
			return fmt.Errorf("%s names a file outside of the backup, %q", manifestFile, f.Name)
		}
		file, err := os.Open(filepath.Join(r.folder, f.Name))
		if err != nil {
			return err
		}
		sum := sha256.New()
		n, err := io.Copy(sum, file)
		if err := errors.Join(err, file.Close()); err != nil {
			return fmt.Errorf("read %s: %w", f.Name, err)
		}
		if n != f.Bytes || hex.EncodeToString(sum.Sum(nil)) != f.SHA256 {
			return fmt.Errorf("%s in %s is not as it was written: its checksum is another", f.Name, r.folder)
		}
	}
	return nil
}

// file returns the name of a file with its suffix.
func (r *Reader) file(name string) (string, error) {
	for _, f := range r.Files {
		if strings.TrimSuffix(f.Name, encryptedSuffix) == name {
			return f.Name, nil
		}
	}
	return "", fmt.Errorf("%s has no %s", r.folder, name)
}

// read calls do with the content of a file.
func (r *Reader) read(name string, do func(io.Reader) error) error {
	found, err := r.file(name)
	if err != nil {
		return err
	}
	file, err := os.Open(filepath.Join(r.folder, found))
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	var content io.Reader = file
	if found != name {
		if content, err = age.Decrypt(file, r.identities...); err != nil {
			return fmt.Errorf("decrypt %s: %w", found, err)
		}
	}
	if err := do(content); err != nil {
		return fmt.Errorf("%s: %w", found, err)
	}
	return nil
}

// Target is the deployment that a backup is restored to.
type Target struct {
	DataDir     string // locked, and without other files
	PostgresBin string // empty: found on the machine
	Secrets     any    // what secrets.json is read into
	// Prepare makes the roles of the new database.
	Prepare func(ctx context.Context, url string) error
	// Check checks the restored database against the secrets, and puts events back into their outboxes.
	Check func(ctx context.Context, url string, events []outbox.SentEvent) error
}

// IsEmpty reports whether nothing is in a data folder but its lock and what a restore that was killed has left.
func IsEmpty(dir string) (bool, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return true, nil
	}
	for _, entry := range entries {
		if entry.Name() != "lock" && entry.Name() != makingFolder {
			return false, nil
		}
	}
	return err == nil, err
}

// restore is a backup that is being restored.
type restore struct {
	*Reader
	Target
	making string
	events []outbox.SentEvent
}

// Restore makes a data folder of the backup. Where it fails it leaves nothing in it.
func (r *Reader) Restore(ctx context.Context, to Target) error {
	t := &restore{Reader: r, Target: to, making: filepath.Join(to.DataDir, makingFolder)}
	if err := t.remove(ctx); err != nil {
		return err
	}
	err := t.run(ctx)
	if err == nil {
		err = t.move()
	}
	return errors.Join(err, t.remove(context.WithoutCancel(ctx)))
}

func (t *restore) remove(ctx context.Context) error {
	return errors.Join(private.Remove(ctx, filepath.Join(t.making, "postgres")), os.RemoveAll(t.making))
}

func (t *restore) run(ctx context.Context) error {
	if err := os.Mkdir(t.making, 0o755); err != nil { // PostgreSQL may run under another account
		return err
	}
	err := t.read(secretsFile, func(in io.Reader) error {
		content, err := io.ReadAll(in)
		if err != nil {
			return err
		}
		return errors.Join(json.Unmarshal(content, t.Secrets), t.writeFile(secretsFile, content))
	})
	if err != nil {
		return err
	}
	if err := t.read(archiveFile, t.unpack); err != nil {
		return err
	}
	dir := filepath.Join(t.making, "postgres")
	server, err := private.Start(ctx, private.Config{Dir: dir, Bin: t.PostgresBin, Durable: true})
	if err != nil {
		return err
	}
	return errors.Join(t.load(ctx, dir, server.URL(private.Database)), server.Stop(context.WithoutCancel(ctx)))
}

func (t *restore) writeFile(name string, content []byte) error {
	mode := os.FileMode(0o600)
	if strings.HasSuffix(name, ".pem") && !strings.HasSuffix(name, "-key.pem") {
		mode = 0o644 // a certificate
	}
	return os.WriteFile(filepath.Join(t.making, name), content, mode)
}

// unpack writes the files of files.tar into the data folder.
func (t *restore) unpack(in io.Reader) error {
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
			err = json.Unmarshal(content, &t.events)
		case isFolderFile(header.Name):
			err = t.writeFile(header.Name, content)
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

// load fills the new database.
func (t *restore) load(ctx context.Context, dir, url string) error {
	bin, major, err := private.ProgramsOf(dir, t.PostgresBin)
	if err != nil {
		return err
	}
	if t.Postgres > major {
		return fmt.Errorf("the backup was made with PostgreSQL %d, and this machine has %d", t.Postgres, major)
	}
	if err := t.Prepare(ctx, url); err != nil {
		return err
	}
	err = t.read(dumpFile, func(in io.Reader) error {
		return runProgram(ctx, filepath.Join(bin, "pg_restore"), in, io.Discard, "--exit-on-error", "--single-transaction",
			"--no-password", "--dbname="+url)
	})
	if err != nil {
		return err
	}
	return t.Check(ctx, url, t.events)
}

// move moves the files to their places, the secrets last: without them it is no data folder.
func (t *restore) move() error {
	entries, err := os.ReadDir(t.making)
	if err != nil {
		return err
	}
	var names []string
	for _, entry := range entries {
		if entry.Name() != secretsFile {
			names = append(names, entry.Name())
		}
	}
	for _, name := range append(names, secretsFile) {
		if err := os.Rename(filepath.Join(t.making, name), filepath.Join(t.DataDir, name)); err != nil {
			return err
		}
	}
	return nil
}
