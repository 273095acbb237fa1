package store

import (
	"context"
	"errors"
	"time"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/cache"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
)

// The table dns_label_routes maps each DNS label of the deployment to one application. The row of
// the application has the label too, and is written in the same transaction.

// ClaimDNSLabel takes a label for an application, and reports whether the label was free. It
// waits for a concurrent transaction that claims or releases the label.
func (tx *Tx) ClaimDNSLabel(ctx context.Context, a applicationapi.Application, label string) (bool, error) {
	n, err := pg.Exec(ctx, tx, `INSERT INTO dns_label_routes (label, tenant_id, application_id) VALUES ($1, $2, $3)
		ON CONFLICT DO NOTHING`, label, a.TenantID, a.ID)
	return n == 1, err
}

// ChangeDNSLabel claims another label for an application and releases its present label. A label
// that any application has is apierr.Exists.
func (tx *Tx) ChangeDNSLabel(ctx context.Context, a applicationapi.Application, label string) error {
	free, err := tx.ClaimDNSLabel(ctx, a, label)
	if err != nil {
		return err
	}
	if !free {
		return apierr.Exists
	}
	tx.releaseDNSLabel(a)
	return nil
}

// releaseDNSLabel makes the label of an application free for others.
func (tx *Tx) releaseDNSLabel(a applicationapi.Application) {
	tx.Queue(`DELETE FROM dns_label_routes WHERE label = $3 AND tenant_id = $1 AND application_id = $2`, a.TenantID,
		a.ID, a.DNSLabel)
}

const (
	labelCacheSize   = 50_000 // about a hundred bytes each
	labelCacheMaxAge = time.Minute
)

// newLabelCache returns the cache of the applications of labels. An entry may be out of date:
// ApplicationByDNSLabel compares it with the application, whose cache is invalidated by
// notifications.
func newLabelCache(now func() time.Time) *cache.Cache[string, id.Ref] {
	return cache.New(cache.Config[string, id.Ref]{Name: "application.labels", Size: labelCacheSize,
		MaxAge: labelCacheMaxAge, Now: now})
}

// ApplicationByDNSLabel returns the application with a DNS label, of any tenant, or
// apierr.NotFound, from the cache. A change by this process is visible at once, a change by
// another process when its notification has arrived (pkg/pg/cache/cache.go).
func (s *Store) ApplicationByDNSLabel(ctx context.Context, label string) (applicationapi.Application, error) {
	ref, err := s.labels.Get(ctx, label, func(ctx context.Context) (id.Ref, error) {
		a, err := s.applicationByDNSLabel(ctx, label)
		return id.Ref{Tenant: a.TenantID, ID: a.ID}, err
	})
	if err != nil {
		return applicationapi.Application{}, err
	}
	a, err := s.applications.One(ctx, ref)
	if err == nil && a.DNSLabel == label || err != nil && !errors.Is(err, apierr.NotFound) {
		return a, err
	}
	s.labels.Invalidate(label) // another application has the label, or none
	return s.applicationByDNSLabel(ctx, label)
}

// applicationByDNSLabel is ApplicationByDNSLabel from the database.
func (s *Store) applicationByDNSLabel(ctx context.Context, label string) (applicationapi.Application, error) {
	type route struct{ TenantID, ApplicationID id.ID }
	to, err := pg.One[route](ctx, s.db, `SELECT tenant_id, application_id FROM dns_label_routes WHERE label = $1`,
		label)
	if err != nil {
		return applicationapi.Application{}, err
	}
	return s.Application(caller.WithTenant(ctx, to.TenantID), to.TenantID, to.ApplicationID)
}
