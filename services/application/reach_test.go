package application_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/services/application"
	"github.com/doorward/doorward/services/application/applicationtest"
	"github.com/doorward/doorward/services/application/store"
)

// counter counts the queries of a pool.
type counter struct{ queries atomic.Int64 }

func (c *counter) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	c.queries.Add(1)
	return ctx
}

func (c *counter) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// only is a directory service that knows one question: any other panics.
type only struct {
	directoryapi.API
	asked  int
	answer func(directoryapi.Authenticate) directoryapi.Authenticated
}

func (o *only) Authenticate(_ context.Context, in directoryapi.Authenticate) (directoryapi.Authenticated, error) {
	o.asked++
	return o.answer(in), nil
}

func TestALoginTakesOneQueryAndOneQuestion(t *testing.T) {
	d := applicationtest.Open(t)
	tenant, _ := d.Tenant(t)
	few, many := newApplication(t, d, tenant), newApplication(t, d, tenant)
	newMapping(t, d, tenant, few, d.Directory(t, tenant, "One"))
	// 200 mappings: of 160 directories, and of 40 organizations with 5 each.
	for range 160 {
		newMapping(t, d, tenant, many, d.Directory(t, tenant, d.NewID().String()))
	}
	var last id.ID
	for range 40 {
		last = newOrganization(t, d, tenant)
		mapOrganization(t, d, tenant, many, last)
		for range 5 {
			mapToOrganization(t, d, tenant, last, d.Directory(t, tenant, d.NewID().String()))
		}
	}
	organization, err := d.Service.Organization(t.Context(), id.Ref{Tenant: tenant, ID: last})
	if err != nil {
		t.Fatal(err)
	}

	count := &counter{}
	config := d.DB.Config()
	config.ConnConfig.Tracer = count
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	peer := &only{answer: func(in directoryapi.Authenticate) directoryapi.Authenticated {
		return directoryapi.Authenticated{Store: in.Stores[len(in.Stores)-1]}
	}}
	svc := application.New(store.New(&pg.DB{Pool: pool}, d.Clock.Now), peer, applicationtest.Base, d.Clock.Now, applicationtest.Config)
	for _, c := range []struct {
		what string
		in   application.LoginAttempt
		to   id.ID
	}{
		{"one store", attempt(application.StoreName{}), few},
		{"360 stores", attempt(application.StoreName{}), many},
		{"an organization by its key", attempt(application.StoreName{NameKey: organization.NameKey}), many},
		{"an organization by its href", attempt(application.StoreName{Href: applicationtest.Base.To("organizations", last)}), many},
	} {
		t.Run(c.what, func(t *testing.T) {
			queries, asked := count.queries.Load(), peer.asked
			if _, err := svc.Attempt(t.Context(), id.Ref{Tenant: tenant, ID: c.to}, c.in); err != nil {
				t.Fatal(err)
			}
			if n := count.queries.Load() - queries; n != 1 {
				t.Errorf("it took %d queries", n)
			}
			if n := peer.asked - asked; n != 1 {
				t.Errorf("it asked the directory service %d times", n)
			}
		})
	}
	if _, err := svc.Login(t.Context(), applicationapi.Login{Tenant: tenant, Application: many, Login: "jo", Password: "x"}); err != nil {
		t.Error(err)
	}
}
