package backup

import (
	"context"
	"fmt"
	"io/fs"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward/deploy/e2e"
	"github.com/doorward/doorward/deploy/e2e/harness"
	"github.com/doorward/doorward/pkg/backuprecord"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/pkg/telemetry/metrictest"
	"github.com/doorward/doorward/pkg/worktest"
)

// The first region is lost, and the standby of the second takes over with what it had received.
func TestTheStandbyOfASecondRegionTakesOver(t *testing.T) {
	dir := harness.TestFolder(t)
	bin, err := harness.Build(t.Context(), dir, harness.StandalonePackages...)
	if err != nil {
		t.Fatal(err)
	}
	first, second := newDrill(t, filepath.Join(dir, "first")), newDrill(t, filepath.Join(dir, "second"))
	script := filepath.Join(first.root, "deploy/backup/backup.sh")
	first.run("initdb", "--pgdata", first.path("data"), "--username", "doorward", "--auth", "trust")
	first.write("data/postgresql.conf", "fsync = off\n"+first.address())
	first.startPostgres("data")
	first.run("createdb", "--host", "localhost", "--port", first.port, "--username", "doorward", "doorward")
	both := "postgres://doorward@localhost:" + first.port + ",localhost:" + second.port +
		"/doorward?sslmode=disable&target_session_attrs=read-write"
	doorward := func(args ...string) {
		t.Helper()
		command := exec.CommandContext(t.Context(), filepath.Join(bin, "doorward"), args...)
		command.Env = []string{"DATABASE_URL=" + both}
		if out, err := command.CombinedOutput(); err != nil {
			t.Fatalf("doorward %v: %v\n%s", args, err, out)
		}
	}
	doorward("migrate")

	second.run(script, "standby", "postgres://doorward@localhost:"+first.port+"/postgres?sslmode=disable", second.path("standby"))
	second.write("standby/postgresql.conf", second.address())
	second.startPostgres("standby")
	doorward("backup", "--record") // a row that the standby receives
	count := `SELECT count(*) FROM directory.backups`
	if err := e2e.AwaitFor(t.Context(), time.Minute, "the row to reach the standby", func(context.Context) error {
		if n := strings.TrimSpace(second.query(count)); n != "1" {
			return fmt.Errorf("the standby has %s rows", n)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	t.Logf("the standby is behind by %s", strings.TrimSpace(second.query(`SELECT now() - pg_last_xact_replay_timestamp()`)))

	first.run("pg_ctl", "stop", "--mode", "immediate", "--pgdata", first.path("data"))
	started := time.Now()
	second.run(script, "promote", second.path("standby"))
	doorward("migrate", "--check")
	doorward("backup", "--record")
	t.Logf("the second region takes writes after %s", time.Since(started).Round(time.Millisecond))
}

// What the archive of the log does is in the metrics of every process.
func TestTheArchiveIsReported(t *testing.T) {
	dir := harness.TestFolder(t)
	d := newDrill(t, dir)
	d.run("initdb", "--pgdata", d.path("data"), "--username", "doorward", "--auth", "trust")
	settings := d.run(filepath.Join(d.root, "deploy/backup/backup.sh"), "settings", d.path("wal"))
	d.write("data/postgresql.conf", settings+"fsync = off\n"+d.address())
	d.startPostgres("data")
	d.run("createdb", "--host", "localhost", "--port", d.port, "--username", "doorward", "doorward")
	d.await("an archived file", `SELECT archived_count > 0 FROM pg_stat_archiver`)
	d.wantArchive(`^\[\{.*doorward_database_archive_age_seconds.*Value:\d`, `^\[\{.*doorward_database_archive_failures_total.*Value:0 `)
	d.query(`ALTER SYSTEM SET archive_command = 'false'`)
	d.query(`SELECT pg_reload_conf()`)
	d.await("a failure", `SELECT failed_count > 0 FROM pg_stat_archiver`)
	d.wantArchive(`^\[\{.*doorward_database_archive_age_seconds.*Value:\d`, `^\[\{.*doorward_database_archive_failures_total.*Value:[1-9]`)
}

// await fills the log until a query answers true.
func (d *drill) await(what, query string) {
	d.Helper()
	if err := e2e.AwaitFor(d.Context(), time.Minute, what, func(context.Context) error {
		d.query(`CREATE TABLE IF NOT EXISTS filled AS SELECT 1 AS n`)
		d.query(`INSERT INTO filled VALUES (1)`)
		d.query(`SELECT pg_switch_wal()`)
		if answer := strings.TrimSpace(d.query(query)); answer != "t" {
			return fmt.Errorf("PostgreSQL answers %s", answer)
		}
		return nil
	}); err != nil {
		d.Fatal(err)
	}
}

// wantArchive waits for the two metrics of a new process.
func (d *drill) wantArchive(age, failures string) {
	d.Helper()
	db, err := pg.Open(d.Context(), pg.Config{
		URL:    secure.Secret("postgres://doorward@localhost:" + d.port + "/doorward?sslmode=disable"),
		Schema: "vault", Migrations: []fs.FS{backuprecord.Migrations()},
	})
	if err != nil {
		d.Fatal(err)
	}
	stop := worktest.Start(d, pg.NewWriteProbe(db).Run)
	defer db.Close()
	defer stop()
	for name, want := range map[string]string{
		"doorward_database_archive_age_seconds": age, "doorward_database_archive_failures_total": failures,
	} {
		if err := e2e.AwaitFor(d.Context(), time.Minute, name, func(ctx context.Context) error {
			found, err := metrictest.Find(ctx, name)
			if text := fmt.Sprintf("%+v", found); err != nil || !regexp.MustCompile(want).MatchString(text) {
				return fmt.Errorf("the metric is %s, %w", text, err)
			}
			return nil
		}); err != nil {
			d.Error(err)
		}
	}
}

// address has the settings of a server that tests reach.
func (d *drill) address() string {
	return "port = " + d.port + "\nlisten_addresses = 'localhost'\nunix_socket_directories = '" + d.path("run") + "'\n"
}
