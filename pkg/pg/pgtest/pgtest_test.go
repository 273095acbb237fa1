package pgtest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

func TestMain(m *testing.M) { Main(m) }

var migrations atomic.Int32

func migrate(ctx context.Context, url string) error {
	migrations.Add(1)
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, `CREATE TABLE word (word text)`)
	return err
}

func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}

func databases(t *testing.T, s *server) (names []string) {
	t.Helper()
	rows, err := connect(t, s.address.String()).Query(t.Context(), `SELECT datname FROM pg_database WHERE datname LIKE $1`, prefix+"%")
	if err != nil {
		t.Fatal(err)
	}
	names, err = pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func TestEachTestHasItsOwn(t *testing.T) {
	t.Run("at once", func(t *testing.T) {
		for n := range 4 {
			t.Run(fmt.Sprint(n), func(t *testing.T) {
				t.Parallel()
				conn := connect(t, New(t, migrate))
				var count int
				if err := conn.QueryRow(t.Context(), `INSERT INTO word VALUES ('mine') RETURNING (SELECT count(*) FROM word)`).Scan(&count); err != nil {
					t.Fatal(err)
				}
				if count != 0 {
					t.Errorf("%d rows were there before", count)
				}
			})
		}
	})
	if got := migrations.Load(); got != 1 {
		t.Errorf("the migrations ran %d times", got)
	}
	if got := databases(t, current); len(got) != 1 {
		t.Errorf("beside the template are left: %v", got)
	}
}

func TestEmptyDatabase(t *testing.T) {
	if _, err := connect(t, New(t, nil)).Exec(t.Context(), `CREATE TABLE word (word text)`); err != nil {
		t.Fatal(err)
	}
}

func TestCutConnections(t *testing.T) {
	url, other := New(t, migrate), New(t, migrate)
	cut, spared := connect(t, url), connect(t, other)
	CutConnections(t, url)
	if err := cut.Ping(t.Context()); err == nil {
		t.Error("the connection still works")
	}
	if err := spared.Ping(t.Context()); err != nil {
		t.Errorf("another database's connection: %v", err)
	}
	connect(t, url)
}

func TestOutage(t *testing.T) {
	url := New(t, migrate)
	before := connect(t, url)
	end := Outage(t, url)
	if err := before.Ping(t.Context()); err == nil {
		t.Error("the connection still works")
	}
	if _, err := pgx.Connect(t.Context(), url); err == nil {
		t.Error("a new connection was let in")
	}
	end()
	connect(t, url)
}

const wait = "PGTEST_WAIT"

// TestPart is what the tests below run in a test binary of its own.
func TestPart(t *testing.T) {
	url := New(t, migrate)
	connect(t, url)
	fmt.Println("running", url, current.dir)
	if os.Getenv(wait) != "" {
		select {} // until it is killed
	}
}

func part(t *testing.T, environment ...string) *exec.Cmd {
	t.Helper()
	command := exec.Command(os.Args[0], "-test.run=^TestPart$", "-test.timeout=1m")
	command.Env = append(os.Environ(), environment...)
	command.Stderr = os.Stderr
	return command
}

func TestBinaryThatIsKilled(t *testing.T) {
	command := part(t, wait+"=1", "TEST_DATABASE_URL=")
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	words := strings.Fields(line)
	if err := command.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = command.Wait() // it was killed
	waitUntilRefused(t, words[1])

	dir := words[2]
	if _, err := os.Stat(dir); err != nil {
		t.Fatalf("a killed binary cannot have cleared away: %v", err)
	}
	long := time.Now().Add(-2 * staleAge)
	if err := os.Chtimes(dir, long, long); err != nil {
		t.Fatal(err)
	}
	if out, err := part(t, "TEST_DATABASE_URL=").Output(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the next binary left %s: %v", dir, err)
	}
}

func waitUntilRefused(t *testing.T, url string) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for late := time.After(10 * time.Second); ; {
		conn, err := pgx.Connect(t.Context(), url)
		if err != nil {
			return
		}
		conn.Close(t.Context())
		select {
		case <-late:
			t.Fatal("the server outlives its binary")
		case <-tick.C:
		}
	}
}

func TestBinaryThatEnds(t *testing.T) {
	out, err := part(t, "TEST_DATABASE_URL=").Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	dir := strings.Fields(string(out))[2]
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the program left %s: %v", dir, err)
	}
}

func TestServerOfSomebodyElse(t *testing.T) {
	New(t, nil) // so that there is a server
	before := databases(t, current)
	if out, err := part(t, "TEST_DATABASE_URL="+current.address.String()).Output(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if after := databases(t, current); len(after) != len(before) {
		t.Errorf("the databases were %v and are %v", before, after)
	}
}

func BenchmarkNew(b *testing.B) {
	New(b, migrate)
	for b.Loop() {
		New(b, migrate)
	}
}
