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
	"os/exec"
	"path/filepath"
	"time"

	"filippo.io/age"

	"github.com/doorward/doorward/pkg/env"
	"github.com/doorward/doorward/pkg/events/outbox"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/pg/private"
)

// dump writes the dump of the database. It returns the events that had left the snapshot of the dump for Kafka and
// were not handled: no event leaves an outbox between the two.
func (b *backup) dump(ctx context.Context, db *pg.DB) (sent []outbox.SentEvent, err error) {
	cfg := env.Load[Config](b.source)
	bin, major, err := private.ProgramsOf(filepath.Join(cfg.DataDir, "postgres"), cfg.PostgresBin)
	if err != nil {
		return nil, err
	}
	b.Postgres = major
	schemas := schemaNames(b.cfg.Databases)
	err = db.InTx(ctx, func(tx *pg.Tx) error { // exports the snapshot as long as it is open
		release, err := outbox.HoldRelays(ctx, tx, schemas)
		if err != nil {
			return err
		}
		if sent, err = b.events.Unhandled(ctx, schemas, time.Now()); err != nil {
			return err
		}
		snapshot, err := pg.Value[string](ctx, tx, `SELECT pg_export_snapshot()`)
		if err != nil {
			return err
		}
		if err := release(); err != nil {
			return err
		}
		return b.add(dumpFile, func(w io.Writer) error {
			return runProgram(ctx, filepath.Join(bin, "pg_dump"), nil, w, "--format=custom", "--no-password",
				"--snapshot="+snapshot, "--dbname="+b.cfg.Databases.Directory.Reveal())
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

// add writes a file of the backup, encrypted if there are recipients.
func (b *backup) add(name string, write func(io.Writer) error) error {
	if len(b.recipients) > 0 {
		name += encryptedSuffix
	}
	file, err := os.OpenFile(filepath.Join(b.folder, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	sum, size := sha256.New(), new(countingWriter)
	err = writeEncrypted(io.MultiWriter(file, sum, size), b.recipients, write)
	if err == nil {
		err = file.Sync()
	}
	if err := errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	b.Files = append(b.Files, backupEntry{Name: name, Bytes: size.n, SHA256: hex.EncodeToString(sum.Sum(nil))})
	return nil
}

func writeEncrypted(to io.Writer, recipients []age.Recipient, write func(io.Writer) error) error {
	if len(recipients) == 0 {
		return write(to)
	}
	encrypted, err := age.Encrypt(to, recipients...)
	if err != nil {
		return err
	}
	if err := write(encrypted); err != nil {
		return err
	}
	return encrypted.Close()
}

// countingWriter counts the bytes that are written to it.
type countingWriter struct{ n int64 }

func (w *countingWriter) Write(p []byte) (int, error) {
	w.n += int64(len(p))
	return len(p), nil
}

// archive writes files.tar.
func (b *backup) archive(w io.Writer, events []outbox.SentEvent) error {
	archive := tar.NewWriter(w)
	add := func(name string, content []byte) error {
		header := &tar.Header{Name: name, Mode: 0o600, Size: int64(len(content)), ModTime: b.CreatedAt}
		if err := archive.WriteHeader(header); err != nil {
			return err
		}
		_, err := archive.Write(content)
		return err
	}
	dir := env.Load[Config](b.source).DataDir
	for _, pattern := range folderFiles {
		paths, _ := filepath.Glob(filepath.Join(dir, pattern)) // the only error is a bad pattern
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
