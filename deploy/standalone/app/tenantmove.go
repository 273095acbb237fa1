package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/doorward/doorward/pkg/env"
	"github.com/doorward/doorward/pkg/pg"
)

// MoveTenant moves the rows of the tenant with a tenant key to another database (shard)
// of this deployment, service by service, while the tenant is used
// (docs/sizing.md#several-databases); pkg/pg/move.go moves the rows of one service. After
// an interruption another call continues, to the same database or back to the former one.
func MoveTenant(ctx context.Context, source *env.Source, tenantKey, to string, out io.Writer) (err error) {
	d, err := openDeployment(ctx, source)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.close()) }()
	tenant, err := d.tenantByKey(ctx, tenantKey)
	if err != nil {
		return err
	}
	stale := false
	for _, schema := range d.schemas {
		name := schema.config.Schema
		db := d.dbs[name]
		moved, err := db.Move(ctx, tenant, to, func(step string) { _, _ = fmt.Fprintf(out, "%s: %s\n", name, step) })
		if err != nil {
			return fmt.Errorf("%s: %w; run the command again to go on, or with --to %s to go back", name, err, moved.From)
		}
		if moved.From != moved.To {
			_, _ = fmt.Fprintf(out, "%s: moved %d rows from %s to %s; writes waited for %s\n", name, moved.Rows, moved.From, moved.To,
				moved.WritesBlocked.Round(time.Millisecond))
		}
		has, err := db.HasStaleRows(ctx, tenant)
		if err != nil {
			return fmt.Errorf("%s: %w; run the command again to go on", name, err)
		}
		stale = stale || has
	}
	if stale {
		_, _ = fmt.Fprintf(out, "waiting %s for requests that read the former rows\n", pg.MaxRequestDuration)
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w; run the command again to delete the former rows", ctx.Err())
		case <-time.After(pg.MaxRequestDuration):
		}
		for _, schema := range d.schemas {
			if err := d.dbs[schema.config.Schema].DeleteStaleRows(ctx, tenant); err != nil {
				return fmt.Errorf("%s: %w; run the command again to go on", schema.config.Schema, err)
			}
		}
	}
	_, _ = fmt.Fprintf(out, "the tenant %s is in %s\n", tenantKey, to)
	return nil
}
