// Package operatorlog is the audit trail of operators: the time, operator and reason of each command that changes a
// deployment (docs/operations.md#record-of-operators). Its table is in
// the schema of the directory service, which owns the tenants.
package operatorlog

import (
	"context"
	"embed"
	"io/fs"
	"log/slog"
	"time"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/list"
	"github.com/doorward/doorward/pkg/list/listsql"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/purge/purgesql"
	"github.com/doorward/doorward/pkg/telemetry"
)

//go:embed migrations/*.sql
var files embed.FS

// Migrations makes the table in a service's schema.
func Migrations() fs.FS { return pg.Embedded(files) }

// The outcomes of a command.
const (
	Done    = "DONE"
	Refused = "REFUSED" // nothing has changed
)

// Retention is how long events are kept.
const Retention = 400 * 24 * time.Hour

// Rows are the events, for the purge.
var Rows = purgesql.Rows{Table: "operator_events", Time: "at"}

// Event is one command of an operator.
type Event = directoryapi.OperatorEvent

const columns = `id, at, command, operator, reason, of_tenant, outcome`

// Record inserts an event. In the transaction of a change both are committed together. Its lock makes the order of seq
// that in which events are committed, so that who asks for those after an event misses none.
func Record(ctx context.Context, tx pg.Querier, e Event) error {
	_, err := pg.Exec(ctx, tx, `INSERT INTO operator_events (`+columns+`) SELECT `+pg.Names(columns)+`
		FROM pg_advisory_xact_lock(hashtextextended('doorward/operator events', 0))`, pg.Named(e))
	return err
}

// Audit writes the line of an event that is committed to the audit log.
func Audit(ctx context.Context, e Event) {
	attrs := []slog.Attr{slog.String("command", e.Command), slog.String("operator", e.Operator),
		slog.String("outcome", e.Outcome)}
	if e.Reason != nil {
		attrs = append(attrs, slog.String("reason", *e.Reason))
	}
	if e.Tenant != nil {
		ctx = caller.WithTenant(ctx, *e.Tenant)
	}
	telemetry.Audit(ctx, "operator", attrs...)
}

// Events returns the events since a time, the newest first: those of a tenant, or all where tenant is nil.
func Events(ctx context.Context, db pg.Querier, tenant *id.ID, since time.Time) ([]Event, error) {
	return pg.All[Event](ctx, db, `SELECT `+columns+` FROM operator_events
		WHERE at >= $1 AND ($2::uuid IS NULL OR of_tenant = $2) ORDER BY at DESC, id DESC`, since, tenant)
}

// Attributes are those by which events are searched and sorted.
var Attributes = list.Spec{
	"at": {Column: "at", Kind: list.Time}, "command": {Column: "command"}, "operator": {Column: "operator"},
	"outcome": {Column: "outcome", Kind: list.Enum, Values: []string{Done, Refused}},
}

// Page returns a page of the events: those of a tenant, or all where tenant is nil. With an event after, it has those
// that were committed after that one, the oldest first; else the newest are first.
func Page(ctx context.Context, db pg.Querier, query list.Query, tenant, after *id.ID) (list.Page[Event], error) {
	key := "seq"
	if after == nil && len(query.Order) == 0 {
		key = "seq DESC"
	}
	return listsql.Select[Event](ctx, db, Attributes, query, columns, `FROM operator_events
		WHERE ($1::uuid IS NULL OR of_tenant = $1)
			AND ($2::uuid IS NULL OR seq > coalesce((SELECT seq FROM operator_events WHERE id = $2), 0))`, key, tenant,
		after)
}
