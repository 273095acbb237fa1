package store

import (
	"context"

	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
)

// TakeDNSLabel gives a label to an application that has none, and tells whether
// it was free. It waits for a transaction that is taking or leaving it.
func (tx *Tx) TakeDNSLabel(ctx context.Context, application id.Ref, label string) (bool, error) {
	n, err := pg.Exec(ctx, tx, `INSERT INTO dns_labels (label, tenant_id, application_id) VALUES ($1, $2, $3) ON CONFLICT (label) DO NOTHING`,
		label, application.Tenant, application.ID)
	return n == 1, err
}

// ChangeDNSLabel gives an application another label and frees the one that it
// had. A label that another application has is apierr.Exists.
func (tx *Tx) ChangeDNSLabel(ctx context.Context, application id.Ref, label string) error {
	return pg.MustChange(ctx, tx, `UPDATE dns_labels SET label = $3 WHERE tenant_id = $1 AND application_id = $2`, application.Tenant, application.ID, label)
}

// freeDNSLabel leaves the label of an application to others.
func (tx *Tx) freeDNSLabel(ctx context.Context, application id.Ref) error {
	_, err := pg.Exec(ctx, tx, `DELETE FROM dns_labels WHERE tenant_id = $1 AND application_id = $2`, application.Tenant, application.ID)
	return err
}
