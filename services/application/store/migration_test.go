package store_test

import (
	"io/fs"
	"testing"
	"testing/fstest"
	"time"

	"github.com/doorward/doorward/pkg/customdata/customdatastore"
	"github.com/doorward/doorward/pkg/events/outbox"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/pg/pgtest"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/application/store"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// Mappings of a release without organizations are read as mappings of applications.
func TestApplicationsOfBeforeOrganizations(t *testing.T) {
	t.Parallel()
	url := pgtest.New(t, nil)
	open := func(migrations fs.FS) *pg.DB {
		db, err := pg.Open(t.Context(), pg.Config{URL: secure.Secret(url), Schema: "application", Migrations: []fs.FS{outbox.Migrations(), customdatastore.Migrations(), migrations}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(db.Close)
		return db
	}
	const first = "20261121000100_application.sql"
	text, err := fs.ReadFile(store.Migrations(), first)
	if err != nil {
		t.Fatal(err)
	}
	before := open(fstest.MapFS{first: {Data: text}})
	now := time.Now()
	tenant, application, policy := id.New(now), id.New(now), id.New(now)
	exec := func(sql string, args ...any) {
		t.Helper()
		if _, err := pg.Exec(t.Context(), before, sql, args...); err != nil {
			t.Fatal(err)
		}
	}
	exec(`INSERT INTO applications (tenant_id, id, name, name_folded, status, saml_policy_id, web_config_id, account_linking_policy_id, created_at, modified_at)
		VALUES ($1, $2, 'Shop', 'shop', 'ENABLED', $2, $2, $3, now(), now())`, tenant, application, policy)
	var directories []id.ID
	for i := range 3 {
		directory := id.New(now)
		directories = append(directories, directory)
		exec(`INSERT INTO account_store_mappings (tenant_id, id, application_id, store_kind, store_id, list_index, is_default_account_store, created_at, modified_at)
			VALUES ($1, $2, $3, 'directories', $2, $4, $5, now(), now())`, tenant, directory, application, i, i == 1)
	}

	s := store.New(open(store.Migrations()), time.Now)
	a, err := s.Application(t.Context(), tenant, application)
	if err != nil || a.DefaultAccountStore != directories[1] {
		t.Fatalf("the application is %+v, %v", a, err)
	}
	if a.DNSLabel != "" || a.CreatedBy != "" {
		t.Errorf("the application is named %q and was made by %q", a.DNSLabel, a.CreatedBy)
	}
	if of, err := s.ApplicationOfSAMLPolicy(t.Context(), tenant, application); err != nil || of.ID != application {
		t.Errorf("its SAML policy is of %+v, %v", of, err)
	}
	m, err := s.Mapping(t.Context(), tenant, store.ApplicationKind, directories[1])
	if err != nil || m.OwnerID != application || m.DirectoryID != directories[1] {
		t.Fatalf("the mapping is %+v, %v", m, err)
	}
	order, err := s.LoginOrder(t.Context(), tenant, application)
	if err != nil || len(order.Stores()) != 3 || order.Stores()[2].ID != directories[2] {
		t.Fatalf("the application reaches %v, %v", order, err)
	}
	p, err := s.LinkingPolicy(t.Context(), tenant, policy)
	if err != nil || p.OwnerID != application || p.Status != "DISABLED" {
		t.Fatalf("the policy is %+v, %v", p, err)
	}
}
