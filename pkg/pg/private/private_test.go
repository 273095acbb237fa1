package private

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// launchDir makes this test binary a launcher that the tests can kill: it
// starts the cluster in the folder, says so, and waits.
const launchDir = "PRIVATE_TEST_LAUNCH"

func TestMain(m *testing.M) {
	dir := os.Getenv(launchDir)
	if dir == "" {
		os.Exit(m.Run())
	}
	server, err := Start(context.Background(), Config{Dir: dir, Durable: true})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("ready", server.process.pid(), server.URL(Database))
	<-server.Done()
}

// home is a folder for clusters that the server's account reaches; t.TempDir is
// closed to it when the tests run as root.
func home(t testing.TB) string { return folderIn(t, Scratch()) }

func folderIn(t testing.TB, parent string) string {
	t.Helper()
	dir, err := os.MkdirTemp(parent, "private-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	if err := os.Chmod(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	return dir
}

func mustStart(t testing.TB, dir string) *Server {
	t.Helper()
	server, err := Start(deadline(t), Config{Dir: dir, Durable: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { mustStop(t, server) })
	return server
}

func mustStop(t testing.TB, server *Server) {
	t.Helper()
	if err := server.Stop(deadline(t)); err != nil {
		t.Fatal(err)
	}
}

func deadline(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func connect(t testing.TB, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(deadline(t), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}

func exec1(t testing.TB, url, sql string) {
	t.Helper()
	if _, err := connect(t, url).Exec(deadline(t), sql); err != nil {
		t.Fatal(err)
	}
}

func ask(t testing.TB, url, sql string) string {
	t.Helper()
	var answer string
	if err := connect(t, url).QueryRow(deadline(t), sql).Scan(&answer); err != nil {
		t.Fatal(err)
	}
	return answer
}

func waitFor(t testing.TB, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for late := time.After(20 * time.Second); !holds(); {
		select {
		case <-late:
			t.Fatalf("timeout: waited for %s", what)
		case <-tick.C:
		}
	}
}

func TestCluster(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(home(t), "postgres")
	server := mustStart(t, dir)
	address := server.URL(Database)

	t.Run("belongs to one role and listens on no network", func(t *testing.T) {
		for sql, want := range map[string]string{
			`SELECT current_user`:                  Role,
			`SELECT current_database()`:            Database,
			`SHOW listen_addresses`:                "",
			`SHOW data_checksums`:                  "on",
			`SHOW server_encoding`:                 "UTF8",
			`SHOW fsync`:                           "on",
			`SHOW max_connections`:                 "100",
			`SELECT lower('É')`:                    "é",
			`SELECT ('a' < 'B' COLLATE "C")::text`: "false",
			`SELECT ('a' < 'B')::text`:             "false",
			`SELECT rolsuper::text FROM pg_roles WHERE rolname = current_user`: "true",
		} {
			if got := ask(t, address, sql); got != want {
				t.Errorf("%s: %q, want %q", sql, got, want)
			}
		}
	})

	t.Run("is closed to other accounts", func(t *testing.T) {
		for _, folder := range []string{server.location.data(), server.sockets} {
			info, err := os.Stat(folder)
			if err != nil {
				t.Fatal(err)
			}
			uid, _ := owner(info)
			if info.Mode().Perm() != 0o700 || uid != server.location.account.uid || uid == 0 {
				t.Errorf("%s has mode %v and owner %d", folder, info.Mode().Perm(), uid)
			}
		}
	})

	t.Run("is found by its folder", func(t *testing.T) {
		if got, err := Running(dir); err != nil || got != address {
			t.Errorf("Running = %q, %v; want %q", got, err, address)
		}
		if got, err := Running(t.TempDir()); err == nil {
			t.Errorf("Running = %q where nothing runs", got)
		}
	})

	t.Run("refuses a second launcher", func(t *testing.T) {
		_, err := Start(deadline(t), Config{Dir: dir})
		if !errors.Is(err, ErrRunning) || !strings.Contains(err.Error(), fmt.Sprintf("already running, pid %d", os.Getpid())) {
			t.Fatalf("the second launcher got: %v", err)
		}
	})

	t.Run("keeps its data over a stop", func(t *testing.T) {
		exec1(t, address, `CREATE TABLE kept AS SELECT 'here' AS word`)
		mustStop(t, server)
		if err := server.Err(); err != nil {
			t.Errorf("a stopped server reports: %v", err)
		}
		again := mustStart(t, dir)
		if got := ask(t, again.URL(Database), `SELECT word FROM kept`); got != "here" {
			t.Errorf("the table holds %q", got)
		}
		if left, _ := filepath.Glob(filepath.Join(dir, "data.new-*")); left != nil {
			t.Errorf("these folders are left over: %v", left)
		}
	})
}

func TestStopAtItsDeadline(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(home(t), "postgres")
	server := mustStart(t, dir)
	exec1(t, server.URL(Database), `CREATE TABLE kept AS SELECT 'here' AS word`)
	over, cancel := context.WithCancel(context.Background())
	cancel()
	// Stopped at once: the context leaves no time for an orderly end, though the
	// server may have been quick enough for one.
	if err := server.Stop(over); err != nil && !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if got := ask(t, mustStart(t, dir).URL(Database), `SELECT word FROM kept`); got != "here" {
		t.Errorf("the table holds %q", got)
	}
}

func TestCancelledStartLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(home(t), "postgres")
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error)
	go func() {
		_, err := Start(ctx, Config{Dir: dir})
		failed <- err
	}()
	waitFor(t, "initdb is under way", func() bool { return exists(filepath.Join(dir, "data.new-*", "base")) })
	cancel()
	if err := <-failed; err == nil {
		t.Fatal("a cancelled start succeeded")
	}
	mustStart(t, dir)
}

func exists(pattern string) bool {
	found, _ := filepath.Glob(pattern)
	return len(found) > 0
}

func TestRefusalIsReportedWithTheLog(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(home(t), "postgres")
	server := mustStart(t, dir)
	mustStop(t, server)
	conf := filepath.Join(server.location.data(), "postgresql.conf")
	text, err := os.ReadFile(conf)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(conf, append(text, "no_such_setting = 1\n"...), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = Start(deadline(t), Config{Dir: dir})
	if err == nil || !strings.Contains(err.Error(), "no_such_setting") {
		t.Fatalf("the launcher got: %v", err)
	}
	if err := os.WriteFile(conf, text, 0o600); err != nil {
		t.Fatal(err)
	}
	mustStart(t, dir)
}

func TestKilledPostmaster(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(home(t), "postgres")
	server := mustStart(t, dir)
	exec1(t, server.URL(Database), `CREATE TABLE kept AS SELECT 'here' AS word`)
	idle := connect(t, server.URL(Database)) // a backend that must not block the next start
	server.process.signal(syscall.SIGKILL)
	<-server.Done()
	if err := server.Err(); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Errorf("the end is reported as: %v", err)
	}
	mustStop(t, server)

	// After a restart of a container the id in the lock files may be anyone's,
	// also a process of the server's own account.
	stranger := exec.Command("cat")
	stranger.SysProcAttr = processAttributes(server.location.account.credential(), syscall.SIGKILL)
	stranger.Dir = "/"
	hold, err := stranger.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := startProcess(stranger); err != nil {
		t.Fatal(err)
	}
	lockFile := filepath.Join(server.location.data(), "postmaster.pid")
	lines := server.location.lockFile()
	lines[0] = strconv.Itoa(stranger.Process.Pid)
	if err := os.WriteFile(lockFile, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}

	again := mustStart(t, dir)
	if got := ask(t, again.URL(Database), `SELECT word FROM kept`); got != "here" {
		t.Errorf("the table holds %q", got)
	}
	if err := idle.Ping(deadline(t)); err == nil {
		t.Error("a connection outlived its server")
	}
	hold.Close()
	if err := stranger.Wait(); err != nil {
		t.Errorf("the stranger was hurt: %v", err)
	}
}

// launcher is another process that runs the cluster.
type launcher struct {
	*exec.Cmd
	said *bufio.Reader
}

func launch(t *testing.T, dir string) launcher { return launchAs(t, os.Args[0], nil, dir) }

func launchAs(t *testing.T, program string, credential *syscall.Credential, dir string) launcher {
	t.Helper()
	command := exec.Command(program)
	command.Env = append(os.Environ(), launchDir+"="+dir)
	command.Stderr = os.Stderr
	command.SysProcAttr = &syscall.SysProcAttr{Credential: credential}
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = command.Process.Kill() })
	return launcher{Cmd: command, said: bufio.NewReader(out)}
}

func (l launcher) ready(t *testing.T) (pid int, url string) {
	t.Helper()
	line, err := l.said.ReadString('\n')
	if _, scanErr := fmt.Sscanf(line, "ready %d %s", &pid, &url); scanErr != nil {
		rest, _ := io.ReadAll(l.said)
		t.Fatalf("the launcher failed: %v %s%s", err, line, rest)
	}
	return pid, url
}

func (l launcher) kill(t *testing.T) {
	t.Helper()
	if err := l.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_, _ = l.Process.Wait() // its exit status is that of the kill
}

func TestKilledLauncher(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(home(t), "postgres")
	first := launch(t, dir)
	pid, address := first.ready(t)
	exec1(t, address, `CREATE TABLE kept AS SELECT 'here' AS word`)
	_, err := Start(deadline(t), Config{Dir: dir})
	if !errors.Is(err, ErrRunning) || !strings.Contains(err.Error(), strconv.Itoa(first.Process.Pid)) {
		t.Fatalf("beside the first launcher: %v", err)
	}
	first.kill(t)
	t.Run("the next launcher need not wait for the old server's end", func(t *testing.T) {
		if got := ask(t, mustStart(t, dir).URL(Database), `SELECT word FROM kept`); got != "here" {
			t.Errorf("the table holds %q", got)
		}
	})
	t.Run("the server ends with its launcher", func(t *testing.T) {
		second := launch(t, dir)
		pid, _ = second.ready(t)
		second.kill(t)
		waitFor(t, "the postmaster has ended", func() bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) })
	})
}

func TestFirstStartCutShort(t *testing.T) {
	t.Parallel()
	for _, moment := range []string{"data.new-*", "data.new-*/base/1/PG_VERSION", "data", "data/postmaster.pid"} {
		t.Run("when "+strings.ReplaceAll(moment, "/", " ")+" appears", func(t *testing.T) {
			dir := filepath.Join(home(t), "postgres")
			first := launch(t, dir)
			waitFor(t, moment, func() bool { return exists(filepath.Join(dir, moment)) })
			first.kill(t)
			server := mustStart(t, dir)
			if got := ask(t, server.URL(Database), `SELECT current_database()`); got != Database {
				t.Errorf("the server is connected to %q", got)
			}
			mustStop(t, server)
			mustStop(t, mustStart(t, dir))
			if left, _ := filepath.Glob(filepath.Join(dir, "data.new-*")); left != nil {
				t.Errorf("these folders are left over: %v", left)
			}
		})
	}
}

func TestLongPath(t *testing.T) {
	t.Parallel()
	dir := home(t)
	for range 4 {
		dir = filepath.Join(dir, strings.Repeat("long", 10))
	}
	first := launch(t, dir)
	_, address := first.ready(t)
	if len(socketOf(t, address)) > 40 {
		t.Errorf("the socket lies in %s", socketOf(t, address))
	}
	first.kill(t)
	server := mustStart(t, dir)
	if exists(socketOf(t, address)) {
		t.Error("a killed launcher's socket folder stays behind")
	}
	mustStop(t, server)
	if exists(server.sockets) {
		t.Error("a stopped server's socket folder stays behind")
	}
}

func socketOf(t *testing.T, address string) string {
	t.Helper()
	parsed, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return parsed.Query().Get("host")
}

func TestRemove(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(home(t), "postgres")
	server := mustStart(t, dir)
	if err := Remove(deadline(t), dir); !errors.Is(err, ErrRunning) {
		t.Fatalf("a running cluster: %v", err)
	}
	mustStop(t, server)
	for range 2 {
		if err := Remove(deadline(t), dir); err != nil {
			t.Fatal(err)
		}
	}
	if exists(dir) {
		t.Error("the removed cluster is still there")
	}
}

// BenchmarkStart tells how long a caller of Start waits, on a real disk.
func BenchmarkStart(b *testing.B) {
	home := func(b *testing.B) string { return folderIn(b, "/tmp") }
	b.Run("cold", func(b *testing.B) {
		for range b.N {
			b.StopTimer()
			dir := filepath.Join(home(b), "postgres")
			b.StartTimer()
			server := mustStart(b, dir)
			b.StopTimer()
			mustStop(b, server)
		}
	})
	b.Run("warm", func(b *testing.B) {
		dir := filepath.Join(home(b), "postgres")
		mustStop(b, mustStart(b, dir))
		for b.Loop() {
			server := mustStart(b, dir)
			b.StopTimer()
			mustStop(b, server)
			b.StartTimer()
		}
	})
}
