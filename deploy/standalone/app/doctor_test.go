package app

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/env"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/pg/pgtest"
	"github.com/doorward/doorward/pkg/secure"
)

func TestTheDoctorSaysWhatToDo(t *testing.T) {
	t.Parallel()
	url := pgtest.New(t, nil)
	environ := []string{
		"DATABASE_URL=" + url, "DOORWARD_MASTER_KEY=" + secure.NewMasterKey("k1").Reveal(), "DOORWARD_INTERNAL_SECRET=" + secure.Token(40).Reveal(),
	}
	examine := func(more ...string) (string, error) {
		var out bytes.Buffer
		err := Doctor(t.Context(), env.New(append(environ, more...)), false, &out)
		return out.String(), err
	}
	want := func(said string, err error, failed bool, parts ...string) {
		t.Helper()
		if errors.Is(err, ErrCheckFailed) != failed {
			t.Errorf("%v\n%s", err, said)
		}
		for _, part := range parts {
			if !strings.Contains(said, part) {
				t.Errorf("the doctor does not say %q:\n%s", part, said)
			}
		}
	}
	said, err := examine()
	want(said, err, true, "run doorward migrate")
	if n := objects(t, url); n != 0 {
		t.Errorf("the doctor has made %d schemas and tables", n)
	}
	if err := Migrate(t.Context(), env.New([]string{"DATABASE_URL=" + url}), new(bytes.Buffer)); err != nil {
		t.Fatal(err)
	}
	made := objects(t, url)
	said, err = examine()
	if n := objects(t, url); n != made {
		t.Errorf("the doctor has changed the database: %d schemas and tables became %d", made, n)
	}
	want(said, err, false, "ok       configuration", "ok       database oauth", "0 events wait in the outbox")
	want(said, err, false, "ok       user addresses")
	addLoginsWithoutAddress(t, url)
	said, err = examine()
	want(said, err, false, "warning  user addresses", `"Shop (old)"`, "Service-User-Address")
	allow(t, url, "SET temp_file_limit = '100kB'")
	said, err = examine()
	want(said, err, true, "failed   database oauth", "it cannot be written to", "free space on its disk")
	allow(t, url, "RESET temp_file_limit")
	said, err = examine("DOORWARD_MSATER_KEY=x")
	want(said, err, true, "DOORWARD_MSATER_KEY is not a variable")
	said, err = examine("REDIS_URL=redis://127.0.0.1:1", "KAFKA_BROKERS=127.0.0.1:1")
	want(said, err, true, "failed   redis", "failed   kafka", "start the brokers")
	said, err = examine("DOORWARD_TLS_CERT=no certificate")
	want(said, err, true, "failed   certificate")
}

// allow changes a setting of the database.
func allow(t *testing.T, url, change string) {
	t.Helper()
	db, err := pg.OpenWithoutMigrating(t.Context(), pg.Config{URL: secure.Secret(url), Schema: "none"})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := pg.Exec(t.Context(), db, `DO $$ BEGIN EXECUTE format('ALTER DATABASE %I `+strings.ReplaceAll(change, "'", "''")+`', current_database()); END $$`); err != nil {
		t.Fatal(err)
	}
}

// addLoginsWithoutAddress adds an application whose logins came without the address of the user.
func addLoginsWithoutAddress(t *testing.T, url string) {
	t.Helper()
	db, err := pg.OpenWithoutMigrating(t.Context(), pg.Config{URL: secure.Secret(url), Schema: "application"})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	now := time.Now()
	tenant, application := id.New(now), id.New(now)
	if _, err := pg.Exec(t.Context(), db, `INSERT INTO applications (tenant_id, id, name, name_folded, status, saml_policy_id, web_config_id,
		account_linking_policy_id, created_at, modified_at) VALUES ($1, $2, 'Shop (old)', 'shop (old)', 'ENABLED', $2, $2, $2, $3, $3)`,
		tenant, application, now); err != nil {
		t.Fatal(err)
	}
	if _, err := pg.Exec(t.Context(), db, `INSERT INTO missing_user_addresses VALUES ($1, $2, $3)`, tenant, application, now); err != nil {
		t.Fatal(err)
	}
}

// objects counts the schemas and the tables of a database.
func objects(t *testing.T, url string) int {
	t.Helper()
	db, err := pg.OpenWithoutMigrating(t.Context(), pg.Config{URL: secure.Secret(url), Schema: "none"})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	n, err := pg.Value[int](t.Context(), db, `SELECT (SELECT count(*) FROM information_schema.tables WHERE table_schema NOT IN ('pg_catalog', 'information_schema'))
		+ (SELECT count(*) FROM pg_namespace WHERE nspname NOT LIKE 'pg\_%' AND nspname NOT IN ('public', 'information_schema'))`)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func masterKeysOfADataFolderAreRotated(t *testing.T, dir string) {
	p := start(t, dir)
	if err := RotateKeys(t.Context(), env.New([]string{"DOORWARD_DATA_DIR=" + dir}), new(bytes.Buffer)); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Fatalf("with a process that runs: %v", err)
	}
	p.stop()
	before, err := os.ReadFile(filepath.Join(dir, "secrets.json"))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := RotateKeys(t.Context(), env.New([]string{"DOORWARD_DATA_DIR=" + dir, "PATH=" + os.Getenv("PATH")}), &out); err != nil {
		t.Fatal(err, out.String())
	}
	after, err := os.ReadFile(filepath.Join(dir, "secrets.json"))
	if err != nil || bytes.Equal(before, after) || !bytes.Contains(after, []byte(",k1:")) {
		t.Fatalf("secrets.json did not change, or lacks the former key, %v", err)
	}
	for _, line := range []string{"made the key k20", "oauth: 1 of 1\n", "all secrets are sealed under the first key"} {
		if !strings.Contains(out.String(), line) {
			t.Errorf("no %q in\n%s", line, out.String())
		}
	}
	again := start(t, dir)
	if again.key.ID != p.key.ID {
		t.Error("the API key has changed")
	}
	again.stop()
}
