package app

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward/deploy/standalone/backup"
	"github.com/doorward/doorward/pkg/env"
	"github.com/doorward/doorward/pkg/events"
	"github.com/doorward/doorward/pkg/events/outbox"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/operatorlog"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/pg/private"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/pkg/worktest"
	directory "github.com/doorward/doorward/services/directory/store"
)

// dataFolder is the environment of a command on a data folder.
func dataFolder(dir string, more ...string) *env.Source {
	return env.New(append([]string{"DOORWARD_DATA_DIR=" + dir, "PATH=" + os.Getenv("PATH")}, more...))
}

// backUp makes a backup of a data folder and returns its folder.
func backUp(t *testing.T, dir string, options BackupOptions) string {
	t.Helper()
	var out bytes.Buffer
	if err := Backup(t.Context(), dataFolder(dir), filepath.Join(t.TempDir(), "backups"), options, false, &out); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(out.String())
}

// An encrypted backup of a process that runs is a whole deployment: accounts, keys, secrets and certificates.
func aBackupOfARunningProcessIsRestored(p *product) {
	before, _ := p.send("POST", "/applications", `{"name":"Backed up"}`, 201)
	var pair bytes.Buffer
	if err := NewExportKeyPair(env.New(nil), "", &pair); err != nil {
		p.Fatal(err)
	}
	identity := filepath.Join(p.TempDir(), "identity")
	if err := os.WriteFile(identity, pair.Bytes(), 0o600); err != nil {
		p.Fatal(err)
	}
	made := backUp(p.T, p.dir, BackupOptions{Recipients: recipientOf(p.T, pair.String())})
	for _, name := range []string{"database.dump", "secrets.json", "files.tar"} {
		info, err := os.Stat(filepath.Join(made, name+".age"))
		if err != nil || info.Mode().Perm() != 0o600 {
			p.Errorf("%s has %v, %v", name, info, err)
		}
	}
	late, _ := p.send("POST", "/applications", `{"name":"Too late"}`, 201)

	dir := filepath.Join(newFolder(p.T), "data")
	p.refuses(made, dir, "", "--identity")
	var out bytes.Buffer
	restore := Change{Command: "restore", MakesDatabase: true}
	err := Record(p.Context(), dataFolder(dir), restore, func(*operatorlog.Event) error {
		return Restore(p.Context(), dataFolder(dir), filepath.Dir(made), identity, &out)
	})
	if err != nil {
		p.Fatal(err)
	}
	if said := out.String(); !strings.HasPrefix(said, "restored 2") || !strings.HasSuffix(said, "Z: 1 tenants\n") {
		p.Errorf("the restore says %q", said)
	}
	restored := start(p.T, dir)
	if restored.key.ID != p.key.ID || restored.key.Secret != p.key.Secret {
		p.Error("the restored folder has another API key")
	}
	restored.send("GET", strings.TrimPrefix(href(before), p.key.BaseURL), "", 200)
	restored.send("GET", strings.TrimPrefix(href(late), p.key.BaseURL), "", 404)
	restored.stop()
	doctor := examination{p.T, []string{"DOORWARD_DATA_DIR=" + dir, "PATH=" + os.Getenv("PATH")}}
	doctor.wants(false, nil, "ok       backup")
	out.Reset()
	err = OperatorEvents(p.Context(), dataFolder(dir), "", "1h", false, &out)
	if newest, _, _ := strings.Cut(out.String(), "\n"); err != nil || !strings.HasSuffix(newest, " restore -") {
		p.Errorf("the record of the restored folder is %q, %v", out.String(), err)
	}
}

// recipientOf returns the public key in what doorward tenant key prints.
func recipientOf(t *testing.T, pair string) string {
	t.Helper()
	at := strings.Index(pair, "age1")
	if at < 0 {
		t.Fatalf("there is no public key in %q", pair)
	}
	return strings.Fields(pair[at:])[0]
}

// refuses wants that a restore fails with some words, and leaves nothing.
func (p *product) refuses(from, dir, identity, why string) {
	p.Helper()
	err := Record(p.Context(), dataFolder(dir), Change{Command: "restore", MakesDatabase: true}, func(*operatorlog.Event) error {
		return Restore(p.Context(), dataFolder(dir), from, identity, new(bytes.Buffer))
	})
	if err == nil || !strings.Contains(err.Error(), why) || errors.Is(err, ErrUsage) {
		p.Errorf("the restore returned %v, want %q", err, why)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		p.Errorf("the refused restore has left %s: %v", dir, err)
	}
}

func aBackupThatFailsLeavesNothing(p *product) {
	bin, err := private.Find("")
	if err != nil {
		p.Fatal(err)
	}
	lacksDump := newFolder(p.T)
	for _, program := range []string{"initdb", "postgres"} {
		if err := os.Symlink(filepath.Join(bin, program), filepath.Join(lacksDump, program)); err != nil {
			p.Fatal(err)
		}
	}
	parent := p.TempDir()
	err = Backup(p.Context(), dataFolder(p.dir, "DOORWARD_POSTGRES_BIN="+lacksDump), parent, BackupOptions{}, false, new(bytes.Buffer))
	entries, _ := os.ReadDir(parent)
	if err == nil || errors.Is(err, ErrUsage) || len(entries) != 0 {
		p.Errorf("a backup without pg_dump returned %v and has left %v", err, entries)
	}
}

func TestBackupsAreOfADataFolder(t *testing.T) {
	for name, source := range map[string]*env.Source{
		"another database":  env.New([]string{"DATABASE_URL=postgres://localhost/none"}),
		"no data folder":    dataFolder(t.TempDir()),
		"a wrong recipient": dataFolder(t.TempDir()),
	} {
		err := Backup(t.Context(), source, t.TempDir(), BackupOptions{
			Recipients: map[bool]string{true: "age1"}[name == "a wrong recipient"],
		}, false, new(bytes.Buffer))
		if !errors.Is(err, ErrUsage) {
			t.Errorf("with %s the backup returned %v", name, err)
		}
	}
	err := Restore(t.Context(), env.New([]string{"DATABASE_URL=postgres://localhost/none"}), t.TempDir(), "", new(bytes.Buffer))
	if !errors.Is(err, ErrUsage) || !strings.Contains(err.Error(), "docs/backup.md") {
		t.Errorf("with another database the restore returned %v", err)
	}
}

// An event that Kafka has and nobody has handled is in neither the tables nor the outbox of the snapshot.
func eventsThatWereSentAndNotHandledComeAgain(t *testing.T, dir string) {
	account := sendUnhandled(t, dir)
	made := backUp(t, dir, BackupOptions{})
	to := filepath.Join(newFolder(t), "data")
	if err := Restore(t.Context(), dataFolder(to), made, "", new(bytes.Buffer)); err != nil {
		t.Fatal(err)
	}
	onFolder(t, to, func(db *pg.DB, _ *env.Source) {
		waiting, err := pg.Values[id.ID](t.Context(), db, `SELECT key FROM outbox WHERE key = $1`, account)
		if err != nil || len(waiting) != 1 {
			t.Errorf("the restored outbox has %d events of the account, %v", len(waiting), err)
		}
	})
}

// onFolder calls do with the directory schema of a data folder, whose broker runs.
func onFolder(t *testing.T, dir string, do func(*pg.DB, *env.Source)) {
	t.Helper()
	source := dataFolder(dir)
	release, err := openFolderBroker(source)
	if err != nil {
		t.Fatal(err)
	}
	stop, err := resolveDatabase(t.Context(), source)
	if err != nil {
		t.Fatal(errors.Join(err, release()))
	}
	db, err := pg.Open(t.Context(), directory.Config(env.Load[Databases](source).Directory))
	if err != nil {
		t.Fatal(errors.Join(err, stop(), release()))
	}
	do(db, source)
	db.Close()
	if err := errors.Join(stop(), release()); err != nil {
		t.Fatal(err)
	}
}

// sendUnhandled sends an event to the broker of a data folder, in which no consumer runs.
func sendUnhandled(t *testing.T, dir string) (account id.ID) {
	t.Helper()
	account = id.New(time.Now())
	onFolder(t, dir, func(db *pg.DB, source *env.Source) {
		sender := outbox.New(db, "directory", time.Now)
		err := sender.InTx(t.Context(), func(tx *outbox.Tx) error {
			return tx.Emit(t.Context(), events.AccountDeleted{Tenant: id.New(time.Now()), Account: account})
		})
		if err != nil {
			t.Fatal(err)
		}
		stop := worktest.Start(t, sender.Relay(env.Load[outbox.Config](source)))
		defer stop()
		deadline := time.Now().Add(30 * time.Second)
		for tick := time.NewTicker(10 * time.Millisecond); ; <-tick.C {
			waiting, _, err := sender.Waiting(t.Context())
			if err != nil || time.Now().After(deadline) {
				t.Fatalf("%d events wait, %v", waiting, err)
			}
			if waiting == 0 {
				tick.Stop()
				return
			}
		}
	})
	return account
}

func olderBackupsAreDropped(t *testing.T, dir string) {
	parent := t.TempDir()
	for _, name := range []string{"20250101T000000Z", "20250102T000000Z", "20250103T000000Z", "notes"} {
		if err := os.Mkdir(filepath.Join(parent, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"20250101T000000Z", "20250102T000000Z"} { // the third was interrupted
		if err := os.WriteFile(filepath.Join(parent, name, "backup.json"), []byte("{}"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var out bytes.Buffer
	if err := Backup(t.Context(), dataFolder(dir), parent, BackupOptions{Keep: 2}, true, &out); err != nil {
		t.Fatal(err)
	}
	var said struct{ Folder string }
	if err := json.Unmarshal(out.Bytes(), &said); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(parent)
	if err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, entry := range entries {
		left = append(left, entry.Name())
	}
	if want := "20250102T000000Z " + filepath.Base(said.Folder) + " notes"; strings.Join(left, " ") != want {
		t.Errorf("the folder has %v, want %s", left, want)
	}
}

// A backup that is not whole, not of this product or too new is refused before the data folder is there.
func brokenBackupsAreRefused(t *testing.T, dir string) {
	p := &product{T: t}
	made := backUp(t, dir, BackupOptions{})
	secrets, err := json.Marshal(secretsFile{Internal: secure.Token(43).Reveal(), Master: secure.NewMasterKey("k1").Reveal()})
	if err != nil {
		t.Fatal(err)
	}
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	if err := errors.Join(w.WriteHeader(&tar.Header{Name: "../escaped", Mode: 0o600}), w.Close()); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		change func(m *backup.Manifest)
		file   string // replaced by content, with its checksum in backup.json
		data   []byte
		why    string
	}{
		"a newer format":         {change: func(m *backup.Manifest) { m.Format = 2 }, why: "format 2"},
		"a newer release":        {change: func(m *backup.Manifest) { m.Version = "99.0.0" }, why: "99.0.0"},
		"a newer PostgreSQL":     {change: func(m *backup.Manifest) { m.Postgres = 99 }, why: "PostgreSQL 99"},
		"another checksum":       {change: func(m *backup.Manifest) { m.Files[0].SHA256 = "00" }, why: "checksum"},
		"a file less":            {change: func(m *backup.Manifest) { m.Files = m.Files[1:] }, why: "database.dump"},
		"a file outside of it":   {change: func(m *backup.Manifest) { m.Files[0].Name = "../" + "database.dump" }, why: "database.dump"},
		"another master key":     {file: "secrets.json", data: secrets, why: "DOORWARD_MASTER_KEY is not that"},
		"no dump":                {file: "database.dump", data: []byte("nothing"), why: "pg_restore"},
		"files of somewhere":     {file: "files.tar", data: archive.Bytes(), why: "../escaped"},
		"no backup.json, no tar": {file: "backup.json", why: "no whole backup"},
	} {
		t.Run(name, func(t *testing.T) {
			p := &product{T: t}
			copied := filepath.Join(t.TempDir(), "copy")
			if err := os.CopyFS(copied, os.DirFS(made)); err != nil {
				t.Fatal(err)
			}
			m := readBackup(t, made)
			switch {
			case c.change != nil:
				c.change(&m)
			case c.file != "backup.json":
				sum := sha256.Sum256(c.data)
				for i := range m.Files {
					if m.Files[i].Name == c.file {
						m.Files[i] = backup.File{Name: c.file, Bytes: int64(len(c.data)), SHA256: hex.EncodeToString(sum[:])}
					}
				}
				if err := os.WriteFile(filepath.Join(copied, c.file), c.data, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			to := folder{path: copied}
			if err := to.writeJSON("backup.json", m); err != nil {
				t.Fatal(err)
			}
			if c.file == "backup.json" {
				if err := os.Remove(to.join("backup.json")); err != nil {
					t.Fatal(err)
				}
			}
			p.refuses(copied, filepath.Join(newFolder(t), "data"), "", c.why)
		})
	}
	err = Restore(t.Context(), dataFolder(dir), made, "", new(bytes.Buffer))
	if err == nil || !strings.Contains(err.Error(), "is not empty") {
		p.Errorf("a restore into a data folder that is in use returned %v", err)
	}
}

func readBackup(t *testing.T, from string) (m backup.Manifest) {
	t.Helper()
	backupFolder := folder{path: from}
	if exists, err := backupFolder.readJSON("backup.json", &m); err != nil || !exists {
		t.Fatalf("%s: %v", from, err)
	}
	return m
}

// The backup of another tool is recorded for the doctor and the metric.
func TestBackupsOfOtherToolsAreRecorded(t *testing.T) {
	t.Parallel()
	url, environ := deploymentForDoctor(t)
	if err := migrated(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	doctor := examination{t, environ}
	doctor.wants(false, nil, "warning  backup", "none is recorded")
	if err := RecordBackup(t.Context(), env.New(environ), false, new(bytes.Buffer)); err != nil {
		t.Fatal(err)
	}
	doctor.wants(false, nil, "ok       backup")
	makeOld(t, url)
	doctor.wants(false, nil, "warning  backup", "27h", "backup-old.md")
}

// makeOld makes the recorded backup older than a night.
func makeOld(t *testing.T, url string) {
	t.Helper()
	db, err := pg.Open(t.Context(), directory.Config(secure.Secret(url)))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := pg.Exec(t.Context(), db, `UPDATE backups SET completed_at = completed_at - interval '27 hours'`); err != nil {
		t.Fatal(err)
	}
}
