package pg

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
)

// Sharding: this file routes tenants to several databases, the shards
// (docs/sizing.md#several-databases). The main shard has all tenants that are not in its table
// tenant_shards, and the names by which a tenant is found, such as the ids of API keys, which are
// unique over all shards. A query goes to the shard of the tenant of its context. A query
// without a tenant goes to the shard of OnMain, Shards or EachShard. move.go moves a tenant.
//
// The functions and tables of migrations/ have other names than the code. enter_tenant is what
// preventMoveSQL calls: each transaction of a tenant, or of PreventMove, holds a lock by it that keeps
// the tenant in its shard. close_tenant is what blockWrites (move.go) calls: it waits for these
// transactions and adds a row to closed_tenants, so that the writes of the tenant are blocked in that
// shard, before and after a move; allowWrites deletes the row. enter_tenant then fails with DW001
// (areWritesBlocked).

// Main is the name of the shard of DATABASE_URL.
const Main = "main"

//go:embed migrations/*.sql
var shardFiles embed.FS

// TablePlacement says which shards have the rows of a table with a tenant_id. The rows of tables
// without a placement are in the shard of their tenant.
type TablePlacement int

// Placements of tables.
const (
	OnMain  TablePlacement = iota + 1 // in the main shard: names by which a tenant is found, written by Claim and Release
	OnBoth                            // in the shard of the tenant, and the rows from before a move also in the main shard
	Derived                           // in the shard of the tenant, written by triggers of other tables
)

type shardConfig struct {
	name string
	url  secure.Secret
}

var shardName = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,62}$`)

// parseShards parses DATABASE_URLS: entries of the form name=postgres://…, separated by white space.
func parseShards(list secure.Secret) (shards []shardConfig, err error) {
	for entry := range strings.FieldsSeq(list.Reveal()) {
		name, url, ok := strings.Cut(entry, "=")
		if !ok || !shardName.MatchString(name) || !strings.Contains(url, "://") {
			return nil, errors.New("DATABASE_URLS must be entries of the form name=postgres://user:password@host/database, separated by " +
				"spaces; a name has small letters, digits, - and _")
		}
		if name == Main || slices.ContainsFunc(shards, func(s shardConfig) bool { return s.name == name }) {
			return nil, fmt.Errorf("DATABASE_URLS has the name %q twice; the database of DATABASE_URL is %q", name, Main)
		}
		shards = append(shards, shardConfig{name, secure.Secret(url)})
	}
	return shards, nil
}

// openShards opens the further databases of the configuration with open. If the schema is migrated, it
// checks that the database of each tenant is configured.
func (db *DB) openShards(ctx context.Context, cfg Config, open func(context.Context, Config) (*DB, error)) error {
	list, err := parseShards(cfg.Shards)
	if err != nil {
		return err
	}
	if len(list) > 0 {
		db.shard, db.shards = Main, []*DB{db}
		db.placements = NewCacheWithin[tenantShard](db, FreshBounds(placementCacheSize), "pg."+cfg.Schema+".shards", db.placementChannel(),
			placementQuery, nil)
	}
	for _, further := range list {
		of := cfg
		of.URL, of.Shards = further.url, ""
		shard, err := open(ctx, of)
		if err != nil {
			return fmt.Errorf("the database %q of DATABASE_URLS: %w", further.name, err)
		}
		shard.shard = further.name
		db.shards = append(db.shards, shard)
	}
	for _, shard := range db.allShards() {
		var migrated bool
		if err := shard.QueryRow(ctx, `SELECT to_regclass('tenant_shards') IS NOT NULL`).Scan(&migrated); err != nil || !migrated {
			return Error(err)
		}
		if err := shard.checkName(ctx); err != nil {
			return err
		}
	}
	return db.checkPlacements(ctx)
}

// checkName returns an error when the database was used under another name before.
func (db *DB) checkName(ctx context.Context) error {
	names, err := Values[string](ctx, db.Pool, `SELECT name FROM shard_name`)
	if err == nil && db.shard != "" && len(names) == 1 && names[0] != db.shard {
		return fmt.Errorf("DATABASE_URL and DATABASE_URLS call a database %q that was used as %q before; give it its name back, or "+
			"another address", db.shard, names[0])
	}
	return err
}

// nameShards records the name of each database in it, if there are several.
func (db *DB) nameShards(ctx context.Context) error {
	for _, shard := range db.shards {
		if _, err := shard.exec(ctx, `INSERT INTO shard_name (name) VALUES ($1) ON CONFLICT DO NOTHING`, shard.shard); err != nil {
			return Error(err)
		}
		if err := shard.checkName(ctx); err != nil {
			return err
		}
	}
	return nil
}

// checkPlacements returns an error when a tenant is in a database that is not configured.
func (db *DB) checkPlacements(ctx context.Context) error {
	names, err := Values[string](db.OnMain(ctx), db, `SELECT DISTINCT shard FROM tenant_shards ORDER BY shard`)
	if err != nil {
		return err
	}
	for _, name := range names {
		if db.shardNamed(name) == nil {
			return fmt.Errorf("DATABASE_URLS lacks the database %q, which has tenants", name)
		}
	}
	return nil
}

// shardNamed returns the shard with a name, or nil.
func (db *DB) shardNamed(name string) *DB {
	if db.shards == nil && name == Main {
		return db
	}
	for _, shard := range db.shards {
		if shard.shard == name {
			return shard
		}
	}
	return nil
}

// allShards returns the shards, the main shard first.
func (db *DB) allShards() []*DB {
	if db.shards == nil {
		return []*DB{db}
	}
	return db.shards
}

// IsSharded reports whether there are several shards.
func (db *DB) IsSharded() bool { return db.shards != nil }

// ShardNames returns the names of the shards, the main shard first.
func (db *DB) ShardNames() []string {
	names := []string{Main}
	for _, shard := range db.allShards()[1:] {
		names = append(names, shard.shard)
	}
	return names
}

type routeKey struct{}

// route is the shard to which the queries of a context go.
type route struct {
	of     *DB // the main shard of the service whose queries it routes: services in one process share contexts
	to     *DB
	always bool // also queries with a tenant
}

// OnMain returns a context whose queries go to the main shard.
func (db *DB) OnMain(ctx context.Context) context.Context {
	if db.shards == nil {
		return ctx
	}
	return context.WithValue(ctx, routeKey{}, route{db, db, true})
}

// OnShardOf returns a context whose queries go to the shard of a tenant, also while the
// tenant is being moved.
func (db *DB) OnShardOf(ctx context.Context, tenant id.ID) (context.Context, error) {
	if db.shards == nil {
		return ctx, nil
	}
	shard, err := db.placementOf(ctx, tenant)
	return context.WithValue(ctx, routeKey{}, route{db, shard, true}), err
}

// Databases is the part of DB that the workers of a service need. A store embeds it.
type Databases interface {
	Shards(context.Context) []context.Context
	EachShard(context.Context, func(context.Context) error) error
	OnMain(context.Context) context.Context
	IsSharded() bool
}

// Shards returns a context for each shard. Queries of that context without a tenant, those of workers,
// go to the shard. They do not wait for a tenant that is being moved, so that their effect may be
// lost: they may only do what is repeated later.
func (db *DB) Shards(ctx context.Context) []context.Context {
	if db.shards == nil {
		return []context.Context{ctx}
	}
	contexts := make([]context.Context, len(db.shards))
	for i, shard := range db.shards {
		contexts[i] = context.WithValue(ctx, routeKey{}, route{db, shard, false})
	}
	return contexts
}

// EachShard calls fn with each context of Shards, one after the other, also after an error.
func (db *DB) EachShard(ctx context.Context, fn func(context.Context) error) error {
	var errs error
	for _, ctx := range db.Shards(ctx) {
		errs = errors.Join(errs, fn(ctx))
	}
	return errs
}

// InAnyShard returns what find returns for the first shard in which it does not fail
// with apierr.NotFound.
func InAnyShard[T any](ctx context.Context, db *DB, find func(context.Context) (T, error)) (found T, err error) {
	for _, ctx := range db.Shards(caller.WithTenant(ctx, id.ID{})) {
		if found, err = find(ctx); !errors.Is(err, apierr.NotFound) {
			return found, err
		}
	}
	return found, err
}

const (
	placementCacheSize = 50_000 // a hundred bytes each
	placementQuery     = `SELECT shard FROM tenant_shards WHERE tenant_id = $1 AND tenant_id = $2`
)

// errNoRoute is the error of a query whose context names no shard.
var errNoRoute = errors.New("pg: a query names neither its tenant (caller.WithTenant) nor a database (OnMain, Shards)")

// tenantShard is a row of tenant_shards. A tenant that was never moved has no row.
type tenantShard struct{ Shard string }

func (db *DB) placementChannel() string { return db.schema + ".tenant_shards" }

// shardOf returns the shard to which the queries of a context go, and the tenant of the queries if
// a transaction must check that the tenant is not moved (preventMoveSQL); else the zero ID.
func (db *DB) shardOf(ctx context.Context) (shard *DB, guarded id.ID, err error) {
	if db.shards == nil {
		return db, id.ID{}, nil
	}
	at, _ := ctx.Value(routeKey{}).(route)
	tenant := caller.From(ctx).Tenant
	switch {
	case at.of == db && (at.always || tenant.IsZero()):
		return at.to, id.ID{}, nil
	case tenant.IsZero():
		return nil, tenant, errNoRoute
	}
	rows, err := db.placements.All(db.OnMain(ctx), id.Ref{Tenant: tenant, ID: tenant})
	if err != nil {
		return nil, tenant, err
	}
	if len(rows) == 0 {
		return db, tenant, nil
	}
	if shard = db.shardNamed(rows[0].Shard); shard == nil {
		return nil, tenant, apierr.Unavailable.Because("the database %q of the tenant is not configured", rows[0].Shard)
	}
	return shard, tenant, nil
}

// withTenant sets the tenant of a query whose context may lack it.
func (db *DB) withTenant(ctx context.Context, tenant id.ID) context.Context {
	if db.shards == nil {
		return ctx
	}
	return caller.WithTenant(ctx, tenant)
}

const (
	// blockedTimeout is how long a transaction waits for a tenant whose writes are blocked by
	// a move.
	blockedTimeout = 5 * time.Second
	blockedPoll    = 50 * time.Millisecond
)

// errWritesBlocked is the error of a transaction that has waited longer than blockedTimeout.
var errWritesBlocked = apierr.Unavailable.
	Because("the tenant is being moved to another database; repeat the request later").WithRetryAfter(time.Second)

// areWritesBlocked reports whether err says that writes of the tenant are blocked in this
// shard.
func areWritesBlocked(err error) bool {
	var failure *pgconn.PgError
	return errors.As(err, &failure) && failure.Code == "DW001"
}

// awaitTenant waits for blockedPoll, because the writes of the tenant are blocked in its shard, and
// invalidates the cached placement of the tenant.
func (db *DB) awaitTenant(ctx context.Context, tenant id.ID, since time.Time) error {
	if time.Since(since) > blockedTimeout {
		return errWritesBlocked
	}
	select {
	case <-ctx.Done():
		return errWritesBlocked
	case <-time.After(blockedPoll):
	}
	db.placements.Invalidate(id.Ref{Tenant: tenant, ID: tenant})
	return nil
}

// Claim runs a statement that inserts a name which is unique over all shards into a table OnMain, and
// returns how many rows it changed. If the tenant is not in the main shard, the statement is
// committed there at once, and is not rolled back with the transaction: it must succeed when it is
// repeated for the same resource.
func (tx *Tx) Claim(ctx context.Context, sql string, args ...any) (int64, error) {
	if tx.main == nil {
		return Exec(ctx, tx, sql, args...)
	}
	if err := tx.begin(ctx); err != nil {
		return 0, err
	}
	return Exec(tx.main.OnMain(ctx), tx.main, sql, args...)
}

// ClaimTx is Claim for several statements: fn gets this transaction if the tenant is in the main
// shard, otherwise a transaction there, which commits when fn returns.
func (tx *Tx) ClaimTx(ctx context.Context, fn func(*Tx) error) error {
	if tx.main == nil {
		return fn(tx)
	}
	if err := tx.begin(ctx); err != nil {
		return err
	}
	return tx.main.InTx(tx.main.OnMain(ctx), fn)
}

// begin begins the transaction, so that the tenant cannot be moved once a name is claimed.
func (tx *Tx) begin(ctx context.Context) error {
	if tx.conn != nil {
		return nil
	}
	return tx.send(ctx, &Batch{})
}

// Release runs a statement that deletes a name of Claim, after the transaction has committed.
func (tx *Tx) Release(sql string, args ...any) {
	if tx.main == nil {
		tx.Queue(sql, args...)
		return
	}
	tx.releases = append(tx.releases, statement{sql: sql, args: args})
}

// runReleases runs the statements of Release in the main shard. After an error the name stays
// taken, without a resource.
func (tx *Tx) runReleases(ctx context.Context) {
	for _, s := range tx.releases {
		if _, err := Exec(tx.main.OnMain(ctx), tx.main, s.sql, s.args...); err != nil {
			slog.WarnContext(ctx, "release of a unique name failed, the name stays taken", "error", err.Error())
		}
	}
}

// PreventMove prevents that a tenant is moved to another shard until the transaction ends, for the
// transaction of a worker, whose context has no tenant. It returns apierr.Unavailable if the tenant
// is being moved, or was moved.
func (tx *Tx) PreventMove(ctx context.Context, tenant id.ID) error {
	if tx.db.shard == "" {
		return nil
	}
	_, err := Exec(ctx, tx, preventMoveSQL, tenant)
	if areWritesBlocked(err) {
		return errWritesBlocked
	}
	return err
}

const preventMoveSQL = `SELECT enter_tenant($1)`

// tablePlacements returns a copy of the placements, with those of the tables of this package.
func tablePlacements(of map[string]TablePlacement) map[string]TablePlacement {
	tables := maps.Clone(of)
	if tables == nil {
		tables = map[string]TablePlacement{}
	}
	tables["tenant_shards"], tables["closed_tenants"] = OnMain, OnMain
	return tables
}
