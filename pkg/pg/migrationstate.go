package pg

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/pressly/goose/v3"

	"github.com/doorward/doorward/pkg/telemetry"
)

// oldestRelease is the oldest release that may run on the schemas of this one. A migration that takes
// away what a former release reads raises it (docs/operations.md#migrations).
const oldestRelease = "1.0.0"

//go:embed migrations/*.sql
var ownMigrations embed.FS

// migrations returns the migrations of a schema: those of the service, and those of every schema.
func (cfg Config) migrations() mergedFolders {
	if len(cfg.Migrations) == 0 {
		return nil
	}
	return append(mergedFolders{Embedded(ownMigrations)}, cfg.Migrations...)
}

// MigrationState says how the migrations of a schema compare with those of this release.
type MigrationState struct {
	Pending []string // files of the migrations that are not applied yet
	Unknown []string // versions that a newer release has applied
	// OldestRelease is the oldest release that may run on a schema with the unknown ones; empty for none.
	OldestRelease string
}

// ReadMigrations returns the state of the migrations of a schema, and changes nothing (migrate.go does).
func ReadMigrations(ctx context.Context, cfg Config) (MigrationState, error) {
	at, err := cfg.parse()
	if err != nil {
		return MigrationState{}, err
	}
	conn, err := at.connect(ctx)
	if err != nil {
		return MigrationState{}, err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	return readMigrations(ctx, conn, cfg)
}

type appliedMigration struct {
	Version       int64
	OldestRelease string
}

func readMigrations(ctx context.Context, conn *pgx.Conn, cfg Config) (s MigrationState, err error) {
	known, err := cfg.migrationFiles()
	if err != nil {
		return s, err
	}
	// By to_jsonb, because a schema of an earlier release has no column oldest_release.
	table := pgx.Identifier{cfg.Schema, "migrations"}.Sanitize()
	applied, err := All[appliedMigration](ctx, conn, `SELECT version_id AS version,
		coalesce(to_jsonb(m)->>'oldest_release', '') AS oldest_release
		FROM `+table+` m WHERE is_applied AND version_id > 0 ORDER BY version_id`)
	if failure, ok := errors.AsType[*pgconn.PgError](err); ok && (failure.Code == "42P01" || failure.Code == "3F000") {
		err = nil // no such table, no such schema: nothing was applied
	}
	if err != nil {
		return s, err
	}
	closed := false
	for _, m := range applied {
		if _, ok := known[m.Version]; ok {
			delete(known, m.Version)
			continue
		}
		s.Unknown = append(s.Unknown, strconv.FormatInt(m.Version, 10))
		if m.OldestRelease == "" {
			closed = true
		}
		if compareReleases(m.OldestRelease, s.OldestRelease) > 0 {
			s.OldestRelease = m.OldestRelease
		}
	}
	if closed {
		s.OldestRelease = ""
	}
	for _, name := range known {
		s.Pending = append(s.Pending, name)
	}
	slices.Sort(s.Pending)
	return s, nil
}

// migrationFiles returns the names of the migrations of this release by their versions.
func (cfg Config) migrationFiles() (map[int64]string, error) {
	files := map[int64]string{}
	for _, folder := range cfg.migrations() {
		names, err := fs.Glob(folder, "*.sql")
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			version, err := goose.NumericComponent(path.Base(name))
			if err != nil {
				return nil, err
			}
			files[version] = name
		}
	}
	return files, nil
}

// NewerError returns the error of a schema that is newer than this release and on which it may not run, or
// nil.
func (s MigrationState) NewerError(schema string) error {
	if len(s.Unknown) == 0 || mayRun(telemetry.Version(), s.OldestRelease) {
		return nil
	}
	runs := "no earlier release"
	if s.OldestRelease != "" {
		runs = "releases from " + s.OldestRelease + " on"
	}
	return fmt.Errorf(
		"the schema %s is newer than this release, %s, which does not know its migrations %s: %s may run on it",
		schema, telemetry.Version(), strings.Join(s.Unknown, ", "), runs)
}

// mayRun reports whether a release may run on a schema whose oldest release that may is oldest. The build
// of a checkout has no number and counts as newer than all.
func mayRun(release, oldest string) bool {
	return oldest != "" && (releaseNumber(release) == [3]int{} || compareReleases(release, oldest) >= 0)
}

// IsNewerRelease reports whether a release is newer than this one, by the numbers of both.
func IsNewerRelease(release string) bool { return compareReleases(release, telemetry.Version()) > 0 }

// compareReleases compares two releases by their numbers alone, so that 1.2.0-dev may run where 1.2.0 may.
func compareReleases(a, b string) int {
	x, y := releaseNumber(a), releaseNumber(b)
	return slices.Compare(x[:], y[:])
}

// releaseNumber returns the three numbers of a version, such as 1.2.3-dev+abc; zeroes for a text that is none.
func releaseNumber(version string) (n [3]int) {
	version = strings.TrimPrefix(version, "v")
	if end := strings.IndexAny(version, "-+"); end >= 0 {
		version = version[:end]
	}
	parts := strings.Split(version, ".")
	if len(parts) != len(n) {
		return n
	}
	for i, part := range parts {
		number, err := strconv.Atoi(part)
		if err != nil {
			return [3]int{}
		}
		n[i] = number
	}
	return n
}
