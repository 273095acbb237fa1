package private

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
)

// minMajorVersion is the oldest supported major version: DROP DATABASE … WITH (FORCE) needs it.
const minMajorVersion = 13

// folders are where distributions install the binaries outside of the PATH, one folder for each
// major version.
var folders = []string{
	"/usr/lib/postgresql/*/bin",
	"/usr/pgsql-*/bin",
	"/opt/homebrew/opt/postgresql*/bin",
	"/usr/local/opt/postgresql*/bin",
}

// ErrNotFound is returned when the machine has no supported PostgreSQL server.
var ErrNotFound = fmt.Errorf("no PostgreSQL server of version %d or newer found on the PATH or in the usual folders; "+
	"install one with `make setup` (or: apt-get install postgresql)", minMajorVersion)

type binaries struct {
	dir   string
	major int
}

// Find returns the folder of initdb and postgres: the setting if it is not empty, else that in the
// PATH, else the newest in folders.
func Find(setting string) (bin string, err error) { return binariesFor(setting, 0) }

// ProgramsOf returns the folder of the programs of the version that created the cluster of Config.Dir, and
// that version (pg_dump, pg_restore).
func ProgramsOf(dir, setting string) (bin string, major int, err error) {
	at, err := locate(dir)
	if err != nil {
		return "", 0, err
	}
	major = at.version()
	bin, err = binariesFor(setting, major)
	return bin, major, err
}

// binariesFor is Find for a major version, unless that is 0: a cluster can be run only by the major
// version that created it.
func binariesFor(setting string, wanted int) (string, error) {
	if setting != "" {
		found, err := inspectBinaries(setting, nil)
		if err != nil {
			return "", fmt.Errorf("the folder of PostgreSQL's programs is set to %s: %w", setting, err)
		}
		if wanted != 0 && found.major != wanted {
			return "", fmt.Errorf("the cluster was made by PostgreSQL %d, but %s holds version %d", wanted, setting,
				found.major)
		}
		return found.dir, nil
	}
	all := installed()
	if len(all) == 0 {
		return "", ErrNotFound
	}
	if wanted == 0 {
		return all[0].dir, nil
	}
	for _, found := range all {
		if found.major == wanted {
			return found.dir, nil
		}
	}
	return "", fmt.Errorf("the cluster was made by PostgreSQL %d, which is no longer installed; "+
		"install it with: apt-get install postgresql-%d", wanted, wanted)
}

// installed returns the binaries of the machine: those in the PATH first, then the newest first.
func installed() []binaries {
	var all []binaries
	for _, pattern := range folders {
		dirs, _ := filepath.Glob(pattern) // the only error is a bad pattern
		for _, dir := range dirs {
			if found, err := inspectBinaries(dir, versionedFolder.FindStringSubmatch(dir)); err == nil {
				all = append(all, found)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b binaries) int { return b.major - a.major })
	if program, err := exec.LookPath("initdb"); err == nil {
		if resolved, err := filepath.EvalSymlinks(program); err == nil {
			program = resolved
		}
		if found, err := inspectBinaries(filepath.Dir(program), nil); err == nil {
			all = slices.Insert(all, 0, found)
		}
	}
	return all
}

var (
	majorVersion    = regexp.MustCompile(`\d+`)
	versionedFolder = regexp.MustCompile(`(?:postgresql[/@]|pgsql-)(\d+)`)
)

// inspectBinaries returns the version of the programs in a folder, or an error if they cannot be used. It
// runs initdb --version, which takes a third of the time of a start, unless printed, the match of
// the version in the name of the folder, has it.
func inspectBinaries(dir string, printed []string) (binaries, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return binaries{}, err
	}
	for _, program := range []string{"initdb", "postgres"} {
		if info, err := os.Stat(filepath.Join(dir, program)); err != nil {
			return binaries{}, err
		} else if info.Mode()&0o111 == 0 {
			return binaries{}, fmt.Errorf("%s is not a program", program)
		}
	}
	var version string
	if len(printed) == 2 {
		version = printed[1]
	} else {
		says, err := exec.Command(filepath.Join(dir, "initdb"), "--version").Output()
		if err != nil {
			return binaries{}, fmt.Errorf("ask initdb for its version: %w", err)
		}
		version = majorVersion.FindString(string(says))
	}
	major, err := strconv.Atoi(version)
	if err != nil {
		return binaries{}, errors.New("initdb does not print its version")
	}
	if major < minMajorVersion {
		return binaries{}, fmt.Errorf("PostgreSQL %d is too old: %d or newer is needed", major, minMajorVersion)
	}
	return binaries{dir: dir, major: major}, nil
}
