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

	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/id"
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
type Event struct {
	ID       id.ID     `json:"-"`
	At       time.Time `json:"at"`
	Command  string    `json:"command"`  // such as tenant suspend
	Operator string    `json:"operator"` // DOORWARD_OPERATOR, or the user of the system
	Reason   *string   `json:"reason"`
	Tenant   *id.ID    `json:"tenant" db:"of_tenant"` // nil: it is about no tenant, or none was found
	Outcome  string    `json:"outcome"`               // Done or Refused
}

const columns = `id, at, command, operator, reason, of_tenant, outcome`

// Record inserts an event. In the transaction of a change both are committed together.
func Record(ctx context.Context, tx pg.Querier, e Event) error {
	_, err := pg.Exec(ctx, tx, pg.Insert("operator_events", columns), pg.Named(e))
	return err
}

// Audit writes the line of an event that is committed to the audit log.
func Audit(ctx context.Context, e Event) {
	attrs := []slog.Attr{slog.String("command", e.Command), slog.String("operator", e.Operator), slog.String("outcome", e.Outcome)}
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
