package private

import (
	"os"
	"path/filepath"
	"testing"
)

// copyPrograms copies PostgreSQL, as Debian lays it out, into a folder of the test, with links to all but its
// programs. It returns the folders of the programs and of the libraries.
func copyPrograms(t *testing.T) (bin, libraries string) {
	t.Helper()
	original, err := Find("")
	if err != nil {
		t.Fatal(err)
	}
	root := home(t)
	bin, libraries = filepath.Join(root, original), filepath.Join(root, filepath.Dir(original), "lib")
	for _, dir := range []string{bin, libraries, filepath.Join(root, "usr/share")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, program := range []string{"initdb", "postgres"} {
		content, err := os.ReadFile(filepath.Join(original, program))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(bin, program), content, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	link := func(from, to string) {
		t.Helper()
		if err := os.Symlink(from, to); err != nil {
			t.Fatal(err)
		}
	}
	link("/usr/share/postgresql", filepath.Join(root, "usr/share/postgresql"))
	files, err := os.ReadDir(filepath.Join(filepath.Dir(original), "lib"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		link(filepath.Join(filepath.Dir(original), "lib", file.Name()), filepath.Join(libraries, file.Name()))
	}
	return bin, libraries
}

func TestAServerWhoseFilesWereReplacedIsRestarted(t *testing.T) {
	t.Parallel()
	bin, libraries := copyPrograms(t)
	server, err := Start(deadline(t), Config{Dir: filepath.Join(home(t), "postgres"), Bin: bin, Durable: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { mustStop(t, server) })
	address := server.URL(Database)
	exec1(t, address, `CREATE TABLE kept (text text)`)
	if lacks, err := server.LacksFiles(deadline(t)); lacks || err != nil {
		t.Errorf("a server that is well lacks files: %v, %v", lacks, err)
	}

	language := filepath.Join(libraries, "plpgsql.so")
	if err := os.Rename(language, language+".new"); err != nil {
		t.Fatal(err)
	}
	if lacks, err := server.LacksFiles(deadline(t)); !lacks || err != nil {
		t.Errorf("a server without its language lacks files: %v, %v", lacks, err)
	}
	if err := os.Rename(language+".new", language); err != nil {
		t.Fatal(err)
	}
	before := ask(t, address, `SELECT pg_postmaster_start_time()::text`)
	if err := server.Restart(deadline(t)); err != nil {
		t.Fatal(err)
	}
	if after := ask(t, address, `SELECT pg_postmaster_start_time()::text`); after == before {
		t.Error("the server was not restarted")
	}
	if n := ask(t, address, `SELECT count(*)::text FROM kept`); n != "0" {
		t.Errorf("the table has %s rows", n)
	}
	select {
	case <-server.Done():
		t.Errorf("the server counts as ended: %v", server.Err())
	default:
	}
	if lacks, err := server.LacksFiles(deadline(t)); lacks || err != nil {
		t.Errorf("after its restart the server lacks files: %v, %v", lacks, err)
	}

	if err := os.Rename(filepath.Join(bin, "initdb"), filepath.Join(bin, "gone")); err != nil {
		t.Fatal(err)
	}
	if err := server.Restart(deadline(t)); err == nil {
		t.Error("a server is restarted without programs")
	}
	ask(t, address, `SELECT 'it runs on'`)
}
