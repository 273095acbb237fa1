package app

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward/deploy/standalone/privateserver"
	"github.com/doorward/doorward/pkg/deployment"
	"github.com/doorward/doorward/pkg/env"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/pg/pgtest"
	"github.com/doorward/doorward/pkg/run"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/pkg/telemetry"
)

// deploymentForDoctor are the variables of a deployment whose servers run, with an empty database.
func deploymentForDoctor(t *testing.T) (url string, environ []string) {
	t.Helper()
	url = pgtest.New(t, nil)
	p, err := run.New(t.Context(), "servers", run.Config{OpsListen: "127.0.0.1:0", Stop: 20 * time.Second,
		Telemetry: telemetry.Config{LogLevel: "warn"}}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	redis, err := privateserver.StartRedis(p, "redis")
	if err != nil {
		t.Fatal(err)
	}
	kafka, err := privateserver.StartKafka(p, t.TempDir(), "kafka")
	if err != nil {
		t.Fatal(err)
	}
	_, mailbox, err := privateserver.StartMailbox(p, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return url, []string{
		"DATABASE_URL=" + url, "DOORWARD_MASTER_KEY=" + secure.NewMasterKey("k1").Reveal(), "DOORWARD_INTERNAL_SECRET=" + secure.Token(40).Reveal(),
		"DOORWARD_BASE_URL=https://id.example.test/v1", "REDIS_URL=" + redis, "KAFKA_BROKERS=" + kafka, "KAFKA_USERNAME=" + privateserver.KafkaUsername,
		"KAFKA_PASSWORD=kafka", "KAFKA_SASL_MECHANISM=" + privateserver.KafkaMechanism, "DOORWARD_SMTP_URL=" + mailbox.SMTP,
	}
}

// examination is what a doctor says of a deployment.
type examination struct {
	*testing.T
	environ []string
}

// wants runs the doctor with further variables and wants some of its words, and whether a check fails.
func (e examination) wants(failed bool, more []string, parts ...string) {
	e.Helper()
	var out bytes.Buffer
	err := Doctor(e.Context(), env.New(append(slices.Clone(e.environ), more...)), false, &out)
	said := out.String()
	if errors.Is(err, ErrCheckFailed) != failed {
		e.Errorf("%v\n%s", err, said)
	}
	for _, part := range parts {
		if !strings.Contains(said, part) {
			e.Errorf("the doctor does not say %q:\n%s", part, said)
		}
	}
}

func TestTheDoctorSaysWhatToDo(t *testing.T) {
	t.Parallel()
	url, environ := deploymentForDoctor(t)
	doctor := examination{t, environ}
	doctor.wants(true, nil, "run doorward migrate")
	if n := objects(t, url); n != 0 {
		t.Errorf("the doctor has made %d schemas and tables", n)
	}
	if err := Migrate(t.Context(), env.New([]string{"DATABASE_URL=" + url}), new(bytes.Buffer)); err != nil {
		t.Fatal(err)
	}
	made := objects(t, url)
	doctor.wants(false, nil, "ok       configuration", "ok       database oauth", "0 events wait in the outbox", "ok       address headers",
		"ok       master key oauth", "ok       clock", "ok       redis", "ok       kafka", "ok       dead letters", "ok       lag notification",
		"ok       smtp", "ok       saml", "ok       held syncs")
	if n := objects(t, url); n != made {
		t.Errorf("the doctor has changed the database: %d schemas and tables became %d", made, n)
	}
	addLoginsWithoutAddress(t, url)
	doctor.wants(false, nil, "warning  address headers", `"Shop (old)"`, "Service-User-Address")
	allow(t, url, "SET temp_file_limit = '100kB'")
	doctor.wants(true, nil, "failed   database oauth", "it cannot be written to", "database-not-writable.md")
	allow(t, url, "RESET temp_file_limit")
	allow(t, url, "SET default_transaction_read_only = on")
	doctor.wants(true, nil, "failed   database oauth", "(25006)")
	allow(t, url, "RESET default_transaction_read_only")
	doctor.wants(true, []string{"DOORWARD_MSATER_KEY=x"}, "DOORWARD_MSATER_KEY is not a variable")
	withoutMail := examination{t, slices.DeleteFunc(slices.Clone(environ), func(v string) bool { return strings.HasPrefix(v, "DOORWARD_SMTP_URL=") })}
	withoutMail.wants(true, nil, "failed   configuration", "DOORWARD_SMTP_URL is missing")
	doctor.wants(true, []string{"REDIS_URL=redis://127.0.0.1:1", "KAFKA_BROKERS=127.0.0.1:1", "DOORWARD_SMTP_URL=smtp://127.0.0.1:1"},
		"failed   redis", "failed   kafka", "start the brokers", "failed   smtp")
}

func TestTheDoctorComparesMasterKeysAndReleases(t *testing.T) {
	t.Parallel()
	url, environ := deploymentForDoctor(t)
	doctor := examination{t, environ}
	if err := Migrate(t.Context(), env.New([]string{"DATABASE_URL=" + url}), new(bytes.Buffer)); err != nil {
		t.Fatal(err)
	}
	if err := RotateKeys(t.Context(), env.New(environ), new(bytes.Buffer)); err != nil { // leaves canaries
		t.Fatal(err)
	}
	doctor.wants(true, []string{"DOORWARD_MASTER_KEY=" + secure.NewMasterKey("k2").Reveal()}, "failed   master key oauth")
	change := func(statement string) {
		t.Helper()
		db, err := pg.OpenWithoutMigrating(t.Context(), pg.Config{URL: secure.Secret(url), Schema: "mfa"})
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		if _, err := pg.Exec(t.Context(), db, statement); err != nil {
			t.Fatal(err)
		}
	}
	change(`INSERT INTO migrations (version_id, is_applied, oldest_release) VALUES (20990101000001, true, '0.1.0')`)
	doctor.wants(false, nil, "warning  database mfa", "20990101000001")
	change(`UPDATE migrations SET oldest_release = NULL WHERE version_id = 20990101000001`)
	doctor.wants(true, nil, "failed   database mfa", "20990101000001")
	err := Migrate(t.Context(), env.New([]string{"DATABASE_URL=" + url}), new(bytes.Buffer))
	if err == nil || !strings.Contains(err.Error(), "20990101000001") {
		t.Errorf("the migration of a newer schema: %v", err)
	}
}

func TestTheDoctorReadsCertificates(t *testing.T) {
	t.Parallel()
	d := &doctor{now: time.Now}
	chain := func(ends time.Time, names ...string) string {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: ends, DNSNames: names}
		der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
		if err != nil {
			t.Fatal(err)
		}
		return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	}
	year := time.Now().AddDate(1, 0, 0)
	all := []string{"id.example.test", "*.id.example.test", "*.apps.example.test"}
	cfg := doctorConfig{BaseURL: "https://id.example.test/v1", IDSite: "example.test", ClientAPI: deployment.ClientAPI{Suffix: "apps.example.test"}}
	for _, c := range []struct{ public, internal, want string }{
		{chain(year, all...), "", "ok"},
		{chain(year, all[0]), "", "failed *.id.example.test, *.apps.example.test"},
		{chain(year, all[1:]...), "", "failed id.example.test"},
		{chain(time.Now().Add(time.Hour), all...), "", "warning good until"},
		{chain(time.Now().Add(-time.Minute), all...), "", "failed good until"},
		{"no certificate", "", "failed no certificate"},
		{"", chain(time.Now().Add(time.Hour), "directory"), "warning good until"},
	} {
		cfg.Certificate, cfg.Internal, d.findings = c.public, c.internal, nil
		d.certificates(cfg)
		if len(d.findings) != 1 {
			t.Fatalf("the findings are %v", d.findings)
		}
		status, text, _ := strings.Cut(c.want, " ")
		if f := d.findings[0]; f.Status != status || !strings.Contains(f.Detail, text) {
			t.Errorf("of %q the finding is %v", c.want, f)
		}
	}
}

func theDoctorLooksAtAStandalone(t *testing.T, dir string) {
	examine := examination{t, []string{"DOORWARD_DATA_DIR=" + dir, "PATH=" + os.Getenv("PATH")}}
	examine.wants(false, nil, "warning  process", "ok       database idsite", "ok       master key idsite", "ok       certificate")
	p := start(t, dir)
	examine.wants(false, nil, "ok       configuration", "ok       database idsite", "ok       redis", "ok       kafka", "ok       dead letters",
		"ok       lag mfa", "ok       smtp", "ok       certificate")
	p.stop()
}

func TestAKeyThatIsMadeInTheSameSecondHasAnotherID(t *testing.T) {
	now := time.Date(2026, 11, 27, 10, 0, 0, 0, time.UTC)
	first := newKeyID(now, "k1")
	second := newKeyID(now, first)
	third := newKeyID(now, second)
	if second == first || third == first || third == second {
		t.Errorf("the keys of a second are %q, %q and %q", first, second, third)
	}
}

// allow changes a setting of the database.
func allow(t *testing.T, url, change string) {
	t.Helper()
	db, err := pg.OpenWithoutMigrating(t.Context(), pg.Config{URL: secure.Secret(url + "&default_transaction_read_only=off"), Schema: "none"})
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
	for range 2 { // in one second
		if err := RotateKeys(t.Context(), env.New([]string{"DOORWARD_DATA_DIR=" + dir, "PATH=" + os.Getenv("PATH")}), new(bytes.Buffer)); err != nil {
			t.Fatal("another rotation:", err)
		}
	}
	again := start(t, dir)
	if again.key.ID != p.key.ID {
		t.Error("the API key has changed")
	}
	again.stop()
}
