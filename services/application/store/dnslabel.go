package store

import (
	"context"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/pg"
)

// What follows keeps the labels of the deployment, each of which leads to one
// application. The row of the application says the same, and is written with it.

// TakeDNSLabel keeps a label for an application that has none, and reports whether
// it was free. It waits for a transaction that is taking or leaving it.
func (tx *Tx) TakeDNSLabel(ctx context.Context, a applicationapi.Application, label string) (bool, error) {
	n, err := pg.Exec(ctx, tx, `INSERT INTO dns_label_routes (label, tenant_id, application_id) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING`,
		label, a.TenantID, a.ID)
	return n == 1, err
}

// ChangeDNSLabel keeps another label for an application and frees the one that
// it has. A label that any application has is apierr.Exists.
func (tx *Tx) ChangeDNSLabel(ctx context.Context, a applicationapi.Application, label string) error {
	return pg.MustChange(ctx, tx, `UPDATE dns_label_routes SET label = $4 WHERE label = $3 AND tenant_id = $1 AND application_id = $2`,
		a.TenantID, a.ID, a.DNSLabel, label)
}

// freeDNSLabel leaves the label of an application to others.
func (tx *Tx) freeDNSLabel(ctx context.Context, a applicationapi.Application) error {
	_, err := pg.Exec(ctx, tx, `DELETE FROM dns_label_routes WHERE label = $3 AND tenant_id = $1 AND application_id = $2`, a.TenantID, a.ID,
		a.DNSLabel)
	return err
}

// ApplicationByDNSLabel returns the application that a label leads to, of any
// tenant, or apierr.NotFound.
func (s *Store) ApplicationByDNSLabel(ctx context.Context, label string) (applicationapi.Application, error) {
	return pg.One[applicationapi.Application](ctx, s.db, `SELECT `+applicationColumns+` FROM dns_label_routes r
		JOIN applications a ON a.tenant_id = r.tenant_id AND a.id = r.application_id WHERE r.label = $1`, label)
}
