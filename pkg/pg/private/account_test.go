package private

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// closedFolder is a 0700 folder of the test's own user, as /root is.
func closedFolder(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(home(t), "closed")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "clone", ".doorward")
}

func TestDataFolderBehindAClosedOne(t *testing.T) {
	t.Parallel()
	folder := closedFolder(t)
	dir := filepath.Join(folder, "postgres")
	server := mustStart(t, dir)
	exec1(t, server.URL(Database), `CREATE TABLE kept AS SELECT 'here' AS word`)
	if !asRoot() {
		if server.Location() != dir {
			t.Errorf("an ordinary user's cluster lies in %s", server.Location())
		}
		return
	}
	t.Cleanup(func() {
		if err := Remove(deadline(t), dir); err != nil {
			t.Error(err)
		}
		if exists(server.Location()) {
			t.Errorf("%s is still there", server.Location())
		}
	})
	if filepath.Dir(server.Location()) != fallbackFolder {
		t.Errorf("root's cluster lies in %s", server.Location())
	}
	if target, err := os.Readlink(dir); err != nil || target != server.Location() {
		t.Errorf("the data folder points to %q: %v", target, err)
	}
	mustStop(t, server)

	t.Run("is found again", func(t *testing.T) {
		again := mustStart(t, dir)
		if got := ask(t, again.URL(Database), `SELECT word FROM kept`); got != "here" || again.Location() != server.Location() {
			t.Errorf("the table in %s holds %q", again.Location(), got)
		}
	})
	t.Run("a new data folder means a new cluster", func(t *testing.T) {
		other := filepath.Join(closedFolder(t), "postgres")
		second := mustStart(t, other)
		t.Cleanup(func() {
			mustStop(t, second)
			if err := Remove(deadline(t), other); err != nil {
				t.Error(err)
			}
		})
		if second.Location() == server.Location() {
			t.Errorf("two data folders share %s", server.Location())
		}
	})
	t.Run("a cluster that is gone is not replaced in silence", func(t *testing.T) {
		lost := filepath.Join(home(t), "postgres")
		if err := os.Symlink(filepath.Join(fallbackFolder, "nowhere"), lost); err != nil {
			t.Fatal(err)
		}
		_, err := Start(deadline(t), Config{Dir: lost})
		if err == nil || !strings.Contains(err.Error(), "which is gone") {
			t.Errorf("the launcher got: %v", err)
		}
	})
	t.Run("an empty folder gives way to the link", func(t *testing.T) {
		empty := filepath.Join(closedFolder(t), "postgres")
		if err := os.MkdirAll(empty, 0o755); err != nil {
			t.Fatal(err)
		}
		third := mustStart(t, empty)
		t.Cleanup(func() {
			mustStop(t, third)
			if err := Remove(deadline(t), empty); err != nil {
				t.Error(err)
			}
		})
		if filepath.Dir(third.Location()) != fallbackFolder {
			t.Errorf("the cluster lies in %s", third.Location())
		}
	})
}

func TestCurrentFolderThatTheAccountCannotEnter(t *testing.T) {
	closed := filepath.Join(home(t), "closed")
	if err := os.Mkdir(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Chdir(closed)
	mustStart(t, filepath.Join(home(t), "postgres"))
}

// TestOtherAccount runs the tests of the cluster once more as another account,
// when they run as root; otherwise they just ran as one.
func TestOtherAccount(t *testing.T) {
	t.Parallel()
	if !asRoot() {
		if account, err := serverAccount(); err != nil || account.other || account.uid == 0 {
			t.Fatalf("an ordinary user's server runs as %+v: %v", account, err)
		}
		return
	}
	account, err := serverAccount()
	if err != nil {
		t.Fatal(err)
	}
	dir := home(t)
	program := filepath.Join(dir, "private.test")
	copyProgram(t, os.Args[0], program)
	credential := &syscall.Credential{Uid: account.uid, Gid: account.gid}

	t.Run("all of it works for an ordinary user", func(t *testing.T) {
		command := exec.Command(program, "-test.timeout=5m",
			"-test.run=Cluster$|Closed|Killed|LongPath|OtherAccount")
		command.Dir = "/"
		command.SysProcAttr = processAttributes(credential, syscall.SIGKILL)
		if out, err := command.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	})

	t.Run("root runs every cluster as one account, and no cluster of another", func(t *testing.T) {
		if account.name != systemAccount {
			t.Errorf("root's server runs as %s", account.name)
		}
		theirs := filepath.Join(home(t), "postgres")
		if err := os.Mkdir(theirs, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(theirs, int(account.uid+1), int(account.gid+1)); err != nil {
			t.Fatal(err)
		}
		if _, err := Start(deadline(t), Config{Dir: theirs}); err == nil || !strings.Contains(err.Error(), "belongs to the account") {
			t.Errorf("root was told: %v", err)
		}
	})
	t.Run("an ordinary user learns that a cluster is not theirs", func(t *testing.T) {
		cluster := filepath.Join(home(t), "postgres")
		mustStop(t, mustStart(t, cluster))
		stranger := &syscall.Credential{Uid: account.uid + 1, Gid: account.gid + 1}
		line, _ := launchAs(t, program, stranger, cluster).said.ReadString('\n')
		if !strings.Contains(line, "belongs to") {
			t.Errorf("the ordinary user was told %s", line)
		}
	})
}

func copyProgram(t *testing.T, from, to string) {
	t.Helper()
	in, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	// A process that another test starts meanwhile would have the file open for writing
	// until it runs its own program, and what is open for writing cannot be executed
	// (ETXTBSY, https://go.dev/issue/22315).
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(out, in); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
}
