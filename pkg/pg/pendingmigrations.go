package pg

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
)

// Pending returns the names of the schema migrations of a service that are not applied yet. It
// applies none (migrate.go does).
func Pending(ctx context.Context, cfg Config) (names []string, err error) {
	at, err := cfg.parse()
	if err != nil {
		return nil, err
	}
	config := at.direct.ConnConfig
	config.RuntimeParams["search_path"] = pgx.Identifier{cfg.Schema}.Sanitize()
	db := stdlib.OpenDB(*config)
	defer func() { _ = db.Close() }()
	done := map[int64]bool{}
	rows, err := db.QueryContext(ctx, `SELECT version_id FROM `+pgx.Identifier{cfg.Schema,
		"migrations"}.Sanitize()+` WHERE is_applied`)
	if err != nil {
		return nil, explainConnectError(err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var version int64
		if err := rows.Scan(&version); err != nil {
			return nil, err
		}
		done[version] = true
	}
	if err := rows.Err(); err != nil {
		return nil, Error(err)
	}
	provider, err := goose.NewProvider(goose.DialectPostgres, db, mergedFolders(cfg.Migrations),
		goose.WithTableName("migrations"))
	if err != nil {
		return nil, err
	}
	for _, source := range provider.ListSources() {
		if !done[source.Version] {
			names = append(names, source.Path)
		}
	}
	slices.Sort(names)
	return names, nil
}
