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
	"os/exec"
	"path/filepath"
	"time"

	"filippo.io/age"

	"github.com/doorward/doorward/pkg/events/outbox"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/pg/private"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/pkg/telemetry"
)

// Source is what a backup is made of. The PostgreSQL and the broker run.
type Source struct {
	DataDir     string
	PostgresBin string // empty: found on the machine
	Database    secure.Secret
	Schemas     []string
	Events      *outbox.Inspector
	MasterKey   secure.Secret
	Secrets     any // content of secrets.json
}

// writer is a backup while it is made.
type writer struct {
	Manifest
	Source
	folder     string
	recipients []age.Recipient
}

// Make makes a backup in a new folder below parent, encrypted if there are recipients. It is consistent: one snapshot
// of all schemas, with the events that had left it for Kafka and were not handled. Where it fails it leaves no
// folder.
func Make(ctx context.Context, from Source, parent string, recipients []age.Recipient) (folder string, m Manifest, err error) {
	ring, err := secure.ParseKeyring(from.MasterKey)
	if err != nil {
		return "", m, fmt.Errorf("DOORWARD_MASTER_KEY: %w", err)
	}
	now := time.Now().UTC().Truncate(time.Second)
	w := &writer{Source: from, folder: filepath.Join(parent, now.Format(nameLayout)), recipients: recipients}
	w.Manifest = Manifest{Format: format, Version: telemetry.Version(), CreatedAt: now, KeyIDs: ring.KeyIDs(), Migrations: map[string]int64{}}
	err = os.MkdirAll(parent, 0o700)
	if err == nil {
		err = os.Mkdir(w.folder, 0o700)
	}
	if err != nil {
		return "", m, fmt.Errorf("make the folder of the backup: %w", err)
	}
	if err := w.write(ctx); err != nil {
		return "", m, errors.Join(err, os.RemoveAll(w.folder))
	}
	return w.folder, w.Manifest, nil
}

func (w *writer) write(ctx context.Context) error {
	// A session without the role of a service reads the schemas of all.
	db, err := pg.OpenWithoutMigrating(ctx, pg.Config{URL: w.Database, Schema: "public"})
	if err != nil {
		return err
	}
	defer db.Close()
	for _, schema := range w.Schemas {
		newest, err := pg.Value[int64](ctx, db, `SELECT coalesce(max(version_id), 0) FROM `+schema+`.migrations WHERE is_applied`)
		if err != nil {
			return err
		}
		w.Migrations[schema] = newest
	}
	events, err := w.dump(ctx, db)
	if err != nil {
		return err
	}
	if err := w.add(secretsFile, func(to io.Writer) error { return json.NewEncoder(to).Encode(w.Secrets) }); err != nil {
		return err
	}
	if err := w.add(archiveFile, func(to io.Writer) error { return w.archive(to, events) }); err != nil {
		return err
	}
	content, err := json.MarshalIndent(w.Manifest, "", "  ")
	if err != nil {
		return err
	}
	part := filepath.Join(w.folder, manifestFile+".part")
	if err := os.WriteFile(part, append(content, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(part, filepath.Join(w.folder, manifestFile))
}

// dump writes the dump of the database. It returns the events that had left the snapshot of the dump for Kafka and
// were not handled: no event leaves an outbox between the two.
func (w *writer) dump(ctx context.Context, db *pg.DB) (sent []outbox.SentEvent, err error) {
	bin, major, err := private.ProgramsOf(filepath.Join(w.DataDir, "postgres"), w.PostgresBin)
	if err != nil {
		return nil, err
	}
	w.Postgres = major
	err = db.InTx(ctx, func(tx *pg.Tx) error { // exports the snapshot as long as it is open
		release, err := outbox.HoldRelays(ctx, tx, w.Schemas)
		if err != nil {
			return err
		}
		if sent, err = w.Events.Unhandled(ctx, w.Schemas, time.Now()); err != nil {
			return err
		}
		snapshot, err := pg.Value[string](ctx, tx, `SELECT pg_export_snapshot()`)
		if err != nil {
			return err
		}
		if err := release(); err != nil {
			return err
		}
		return w.add(dumpFile, func(to io.Writer) error {
			return runProgram(ctx, filepath.Join(bin, "pg_dump"), nil, to, "--format=custom", "--no-password",
				"--snapshot="+snapshot, "--dbname="+w.Database.Reveal())
		})
	})
	return sent, err
}

// runProgram runs a program of PostgreSQL, and returns what it says if it fails. The address of a private server,
// among its arguments, holds no password.
func runProgram(ctx context.Context, program string, in io.Reader, out io.Writer, args ...string) error {
	var said bytes.Buffer
	command := exec.CommandContext(ctx, program, args...)
	command.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "TZ=UTC"}
	command.Stdin, command.Stdout, command.Stderr = in, out, &said
	if err := command.Run(); err != nil {
		return fmt.Errorf("%s: %w: %s", filepath.Base(program), err, bytes.TrimSpace(said.Bytes()))
	}
	return nil
}

// add writes a file of the backup.
func (w *writer) add(name string, write func(io.Writer) error) error {
	if len(w.recipients) > 0 {
		name += encryptedSuffix
	}
	file, err := os.OpenFile(filepath.Join(w.folder, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	sum := sha256.New()
	err = w.encrypt(io.MultiWriter(file, sum), write)
	if err == nil {
		err = file.Sync()
	}
	size, sizeErr := file.Seek(0, io.SeekEnd)
	if err := errors.Join(err, sizeErr, file.Close()); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	w.Files = append(w.Files, File{Name: name, Bytes: size, SHA256: hex.EncodeToString(sum.Sum(nil))})
	return nil
}

func (w *writer) encrypt(to io.Writer, write func(io.Writer) error) error {
	if len(w.recipients) == 0 {
		return write(to)
	}
	encrypted, err := age.Encrypt(to, w.recipients...)
	if err != nil {
		return err
	}
	if err := write(encrypted); err != nil {
		return err
	}
	return encrypted.Close()
}

// archive writes files.tar.
func (w *writer) archive(to io.Writer, events []outbox.SentEvent) error {
	archive := tar.NewWriter(to)
	add := func(name string, content []byte) error {
		header := &tar.Header{Name: name, Mode: 0o600, Size: int64(len(content)), ModTime: w.CreatedAt}
		if err := archive.WriteHeader(header); err != nil {
			return err
		}
		_, err := archive.Write(content)
		return err
	}
	for _, pattern := range folderFiles {
		paths, _ := filepath.Glob(filepath.Join(w.DataDir, pattern)) // the only error is a bad pattern
		for _, path := range paths {
			content, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			if err := add(filepath.Base(path), content); err != nil {
				return err
			}
		}
	}
	content, err := json.Marshal(events)
	if err != nil {
		return err
	}
	if err := add(eventsFile, content); err != nil {
		return err
	}
	return archive.Close()
}
