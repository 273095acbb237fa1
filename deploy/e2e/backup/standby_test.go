package backup

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward/deploy/e2e"
	"github.com/doorward/doorward/deploy/e2e/harness"
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

// address has the settings of a server that tests reach.
func (d *drill) address() string {
	return "port = " + d.port + "\nlisten_addresses = 'localhost'\nunix_socket_directories = '" + d.path("run") + "'\n"
}
