package store

import (
	"context"
	"time"

	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
)

// RecordMissingUserAddress records when a login at an application came without the address of the
// user. It does nothing for an application that does not exist.
func (tx *Tx) RecordMissingUserAddress(ctx context.Context, tenant, application id.ID, now time.Time) error {
	_, err := pg.Exec(ctx, tx, `INSERT INTO missing_user_addresses (tenant_id, application_id, seen_at)
		SELECT tenant_id, id, $3 FROM applications WHERE tenant_id = $1 AND id = $2
		ON CONFLICT (tenant_id, application_id) DO UPDATE SET seen_at = excluded.seen_at`, tenant, application, now)
	return err
}
