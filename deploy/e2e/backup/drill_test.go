package backup

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward/deploy/e2e"
	"github.com/doorward/doorward/deploy/e2e/harness"
	"github.com/doorward/doorward/pkg/pg/private"
)

const mailLimit = 3 * time.Minute

// drill is a PostgreSQL that archives its log, and a deployment on it.
type drill struct {
	*testing.T
	root, dir, bin, account string // bin holds PostgreSQL's programs, account is the system's user that runs it
	port                    string
}

func TestADeploymentIsRestoredAsItWasAtATime(t *testing.T) {
	dir := harness.TestFolder(t)
	ctx := t.Context()
	d := newDrill(t, dir)
	d.run("initdb", "--pgdata", d.path("data"), "--username", "doorward", "--auth", "trust")
	settings := d.run(filepath.Join(d.root, "deploy/backup/backup.sh"), "settings", d.path("wal"))
	d.write("data/postgresql.conf", settings+"max_connections = 400\nfsync = off\n"+d.address())
	d.startPostgres("data")
	d.run("createdb", "--host", "localhost", "--port", d.port, "--username", "doorward", "doorward")
	database := "postgres://doorward@localhost:" + d.port + "/doorward?sslmode=disable"

	bin, err := harness.Build(ctx, dir, slices.Concat(harness.DistributedPackages, harness.StandalonePackages)...)
	if err != nil {
		t.Fatal(err)
	}
	deployment, client := harness.TestDistributed(t, harness.Config{
		Dir: filepath.Join(dir, "deployment"), Bin: bin, OwnServers: true, Database: database,
	})

	fixture := client.NewFixture(t)
	accounts := fixture.Application.Link(t, "accounts")
	tokens := func(account e2e.Object) e2e.Object {
		return client.Token(t, fixture.Application.Href(), url.Values{
			"grant_type": {"password"}, "username": {account.Text("email")}, "password": {e2e.Password},
		})
	}
	base := client.Register(t, accounts) // is in the base backup
	baseToken := tokens(base)
	d.run(filepath.Join(d.root, "deploy/backup/backup.sh"), "base", database, d.path("base"))
	d.prune()

	logged := client.Register(t, accounts) // is in the archived log
	loggedToken := tokens(logged)
	client.Create(t, base.Link(t, "factors"), e2e.Object{"type": "google-authenticator", "issuer": "Shop"})
	client.Want(t, http.StatusOK, e2e.Login(fixture.Application, logged.Text("email"), e2e.Password))
	at := strings.TrimSpace(d.query(`SELECT to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`))

	// The damage, of which the other services learn by events.
	late := client.Register(t, accounts)
	client.Delete(t, base.Href())
	client.Update(t, logged.Href(), e2e.Object{"password": "Another1!"})
	if err := e2e.AwaitFor(ctx, mailLimit, "the deletion to reach the tokens", func(context.Context) error {
		if n := strings.TrimSpace(d.query(`SELECT count(*) FROM oauth.refresh_tokens`)); n != "0" {
			return fmt.Errorf("%s refresh tokens are left", n)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}

	d.query(`SELECT pg_switch_wal()`)
	stopped := time.Now()
	if err := deployment.StopProcesses(ctx); err != nil {
		t.Fatal(err)
	}
	d.stopPostgres("data")
	d.run(filepath.Join(d.root, "deploy/backup/backup.sh"), "restore", d.path("base"), d.path("wal"), at, d.path("restored"))
	d.startPostgres("restored")
	if err := e2e.AwaitFor(ctx, mailLimit, "the end of the recovery", func(context.Context) error {
		if state := strings.TrimSpace(d.query(`SELECT pg_is_in_recovery()`)); state != "f" {
			return errors.New("it goes on")
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	rewind := exec.CommandContext(ctx, filepath.Join(bin, "doorward"), "events", "rewind", "--to", at)
	rewind.Env = deployment.Settings()
	out, err := rewind.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "are passed over") || strings.Contains(string(out), " 0 are passed over") {
		t.Fatalf("rewind: %v\n%s", err, out)
	}
	t.Logf("rewind: %s", out)
	if err := deployment.StartProcesses(ctx); err != nil {
		t.Fatal(err)
	}

	for _, account := range []e2e.Object{base, logged} {
		client.Want(t, http.StatusOK, e2e.Login(fixture.Application, account.Text("email"), e2e.Password))
	}
	t.Logf("users log in %s after the processes were stopped", time.Since(stopped).Round(time.Millisecond))
	client.Want(t, http.StatusBadRequest, e2e.Login(fixture.Application, late.Text("email"), e2e.Password))
	if factors := client.All(t, base.Link(t, "factors")); len(factors) != 1 || factors[0].Text("secret") == "" {
		t.Errorf("the authenticator, which is sealed under the master key: %v", factors)
	}
	// A mail of now shows that events flow; then those of before have had their time too.
	client.Update(t, fixture.Directory.Link(t, "accountCreationPolicy"), e2e.Object{"verificationEmailStatus": "ENABLED"})
	after := client.Register(t, accounts)
	client.AwaitMail(t, after.Text("email"))
	client.Delete(t, client.Register(t, accounts).Href())
	for _, token := range []e2e.Object{baseToken, loggedToken} {
		client.Token(t, fixture.Application.Href(), url.Values{"grant_type": {"refresh_token"}, "refresh_token": {token.Text("refresh_token")}})
	}
	doctor := exec.CommandContext(ctx, filepath.Join(bin, "doorward"), "doctor")
	doctor.Env = deployment.Settings()
	if out, err := doctor.CombinedOutput(); err != nil {
		t.Errorf("the doctor: %v\n%s", err, out)
	}
}

// The page shows the commands of the script.
func TestThePageShowsTheCommandsOfTheScript(t *testing.T) {
	root, err := harness.Root()
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(root, "docs/backup.md"))
	if err != nil {
		t.Fatal(err)
	}
	script, err := os.ReadFile(filepath.Join(root, "deploy/backup/backup.sh"))
	if err != nil {
		t.Fatal(err)
	}
	code, shown := false, 0
	for line := range strings.Lines(string(page)) {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "```"):
			code = !code
		case code:
			shown++
			if !strings.Contains(string(script), line+"\n") {
				t.Errorf("the script has no line %q", line)
			}
		}
	}
	if shown < 6 {
		t.Errorf("the page shows %d lines", shown)
	}
}

func newDrill(t *testing.T, dir string) *drill {
	t.Helper()
	root, err := harness.Root()
	if err != nil {
		t.Fatal(err)
	}
	bin, err := private.Find(os.Getenv("DOORWARD_POSTGRES_BIN"))
	if err != nil {
		t.Fatal(err)
	}
	address := harness.FreeAddress()
	d := &drill{T: t, root: root, dir: filepath.Join(dir, "postgresql"), bin: bin, port: address[strings.LastIndex(address, ":")+1:]}
	folders := []string{"wal", "run"}
	for _, folder := range folders {
		if err := os.MkdirAll(d.path(folder), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if os.Geteuid() == 0 { // PostgreSQL refuses to run as root
		if _, err := user.Lookup("postgres"); err != nil {
			t.Fatal(err)
		}
		d.account = "postgres"
		if out, err := exec.CommandContext(t.Context(), "chown", "-R", "postgres", d.dir).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	t.Cleanup(func() { // after the deployment; fails for one that does not run
		for _, data := range []string{"data", "restored", "standby"} {
			_ = d.command(context.WithoutCancel(t.Context()), "pg_ctl", "stop", "--mode", "immediate", "--pgdata", d.path(data)).Run()
		}
	})
	return d
}

// prune deletes the archived log before the base backup, and nothing that the restore needs.
func (d *drill) prune() {
	d.Helper()
	if failed := strings.TrimSpace(d.query(`SELECT failed_count FROM pg_stat_archiver`)); failed != "0" {
		d.Fatalf("%s files could not be archived", failed)
	}
	segments := func() []string {
		found, err := filepath.Glob(d.path("wal/" + strings.Repeat("[0-9A-F]", 24)))
		if err != nil {
			d.Fatal(err)
		}
		return found
	}
	before := segments()
	d.run(filepath.Join(d.root, "deploy/backup/backup.sh"), "prune", d.path("base"), d.path("wal"))
	if after := segments(); len(before) < 2 || len(after) == 0 || after[0] == before[0] {
		d.Fatalf("of %v are left %v", before, after)
	}
}

func (d *drill) path(name string) string { return filepath.Join(d.dir, name) }

func (d *drill) write(name, more string) {
	d.Helper()
	file, err := os.OpenFile(d.path(name), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		d.Fatal(err)
	}
	_, err = file.WriteString(more)
	if err := errors.Join(err, file.Close()); err != nil {
		d.Fatal(err)
	}
}

// run runs a program of PostgreSQL, or a script, as the user of PostgreSQL.
func (d *drill) run(program string, args ...string) string {
	d.Helper()
	out, err := d.command(d.Context(), program, args...).CombinedOutput()
	if err != nil {
		d.Fatalf("%s %v: %v\n%s", program, args, err, out)
	}
	return string(out)
}

func (d *drill) command(ctx context.Context, program string, args ...string) *exec.Cmd {
	if !filepath.IsAbs(program) {
		program = filepath.Join(d.bin, program)
	}
	args = append([]string{"PGBIN=" + d.bin, program}, args...)
	name := "env"
	if d.account != "" {
		name, args = "runuser", append([]string{"-u", d.account, "--", "env"}, args...)
	}
	command := exec.CommandContext(ctx, name, args...)
	command.Dir = "/"
	return command
}

func (d *drill) query(sql string) string {
	d.Helper()
	return d.run("psql", "--host", "localhost", "--port", d.port, "--username", "doorward", "--dbname", "doorward",
		"--no-psqlrc", "--tuples-only", "--no-align", "--command", sql)
}

func (d *drill) startPostgres(data string) {
	d.Helper()
	d.run("pg_ctl", "start", "--wait", "--pgdata", d.path(data), "--log", d.path(data+".log"))
}

func (d *drill) stopPostgres(data string) {
	d.Helper()
	d.run("pg_ctl", "stop", "--mode", "fast", "--pgdata", d.path(data))
}
