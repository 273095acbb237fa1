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

// What follows keeps the labels of the deployment, each of which leads to one
// application. The row of the application says the same, and is written with it.

// TakeDNSLabel keeps a label for an application that has none, and reports whether
// it was free. It waits for a transaction that is taking or leaving it.
func (tx *Tx) TakeDNSLabel(ctx context.Context, a applicationapi.Application, label string) (bool, error) {
	n, err := tx.Claim(ctx, `INSERT INTO dns_label_routes AS r (label, tenant_id, application_id) VALUES ($1, $2, $3)
		ON CONFLICT (label) DO UPDATE SET label = excluded.label
		WHERE r.tenant_id = excluded.tenant_id AND r.application_id = excluded.application_id`, label, a.TenantID, a.ID)
	return n == 1, err
}

// ChangeDNSLabel keeps another label for an application and frees the one that
// it has. A label that any application has is apierr.Exists.
func (tx *Tx) ChangeDNSLabel(ctx context.Context, a applicationapi.Application, label string) error {
	free, err := tx.TakeDNSLabel(ctx, a, label)
	if err == nil && !free {
		err = apierr.Exists
	}
	if err == nil {
		tx.freeDNSLabel(a)
	}
	return err
}

// freeDNSLabel leaves the label of an application to others.
func (tx *Tx) freeDNSLabel(a applicationapi.Application) {
	tx.Release(`DELETE FROM dns_label_routes WHERE label = $3 AND tenant_id = $1 AND application_id = $2`, a.TenantID, a.ID, a.DNSLabel)
}

const (
	labelCacheSize   = 50_000 // about a hundred bytes each
	labelCacheMaxAge = time.Minute
)

// newLabelCache holds where labels led. The application's own row says whether one
// still does, and a change of that is reported.
func newLabelCache(now func() time.Time) *cache.Cache[string, id.Ref] {
	return cache.New(cache.Config[string, id.Ref]{Name: "application.labels", Size: labelCacheSize, MaxAge: labelCacheMaxAge, Now: now})
}

// ApplicationByDNSLabel returns the application that a label leads to, of any
// tenant, or apierr.NotFound. It comes from the cache: what this process changes shows
// at once, what another changes a moment later.
func (s *Store) ApplicationByDNSLabel(ctx context.Context, label string) (applicationapi.Application, error) {
	at, err := s.labels.Get(ctx, label, func(ctx context.Context) (id.Ref, error) {
		a, err := s.labelled(ctx, label)
		return id.Ref{Tenant: a.TenantID, ID: a.ID}, err
	})
	if err != nil {
		return applicationapi.Application{}, err
	}
	a, err := s.applications.One(ctx, at)
	if err == nil && a.DNSLabel == label || err != nil && !errors.Is(err, apierr.NotFound) {
		return a, err
	}
	s.labels.Invalidate(label) // another application has it, or none
	return s.labelled(ctx, label)
}

func (s *Store) labelled(ctx context.Context, label string) (applicationapi.Application, error) {
	type route struct{ TenantID, ApplicationID id.ID }
	at, err := pg.One[route](s.db.OnMain(ctx), s.db, `SELECT tenant_id, application_id FROM dns_label_routes WHERE label = $1`, label)
	if err != nil {
		return applicationapi.Application{}, err
	}
	return s.Application(caller.WithTenant(ctx, at.TenantID), at.TenantID, at.ApplicationID)
}
