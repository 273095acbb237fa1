package private

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// pretend makes a folder of programs that say they are of the version.
func pretend(t *testing.T, version string) string {
	t.Helper()
	dir := t.TempDir()
	for _, program := range []string{"initdb", "postgres"} {
		script := "#!/bin/sh\necho 'initdb (PostgreSQL) " + version + "'\n"
		if err := os.WriteFile(filepath.Join(dir, program), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestFind(t *testing.T) {
	usual := folders
	t.Cleanup(func() { folders = usual })
	newer, older, ancient := pretend(t, "17.2 (Debian 17.2-1)"), pretend(t, "14.9"), pretend(t, "12.22")

	for name, c := range map[string]struct {
		setting, path string
		folders       []string
		wanted        int
		bin, refusal  string
	}{
		"a setting comes first":                   {setting: ancient + "/../" + filepath.Base(older), path: newer, bin: older},
		"a setting that is too old is refused":    {setting: ancient, path: newer, refusal: "12 is too old"},
		"a setting that is wrong is refused":      {setting: "/nowhere", path: newer, refusal: "set to /nowhere"},
		"the PATH comes next":                     {path: older, folders: []string{newer}, bin: older},
		"then the newest that is installed":       {folders: []string{ancient, older, newer}, bin: newer},
		"one too old on the PATH is passed over":  {path: ancient, folders: []string{older}, bin: older},
		"a cluster gets the version that made it": {path: newer, folders: []string{older, newer}, wanted: 14, bin: older},
		"a cluster's version may be gone":         {path: newer, wanted: 14, refusal: "apt-get install postgresql-14"},
		"a setting may not fit the cluster":       {setting: newer, wanted: 14, refusal: "made by PostgreSQL 14"},
		"nothing found names the one command":     {folders: []string{ancient}, refusal: "make setup"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("PATH", c.path)
			folders = c.folders
			bin, err := binariesFor(c.setting, c.wanted)
			if bin != c.bin {
				t.Errorf("found %q, want %q", bin, c.bin)
			}
			if c.refusal != "" && (err == nil || !strings.Contains(err.Error(), c.refusal)) {
				t.Errorf("the refusal is: %v", err)
			}
			if c.refusal == "" && err != nil {
				t.Error(err)
			}
		})
	}

	t.Run("the machine's own is found", func(t *testing.T) {
		folders = usual
		if _, err := Find(""); err != nil || errors.Is(err, ErrNotFound) {
			t.Fatal(err)
		}
	})
}

func TestClusterOfAnotherVersion(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(home(t), "postgres")
	server := mustStart(t, dir)
	mustStop(t, server)
	if err := os.WriteFile(filepath.Join(server.location.data(), "PG_VERSION"), []byte("99\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Start(deadline(t), Config{Dir: dir})
	if err == nil || !strings.Contains(err.Error(), "made by PostgreSQL 99") {
		t.Fatalf("the launcher got: %v", err)
	}
}
