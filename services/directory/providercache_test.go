package directory_test

import (
	"errors"
	"runtime"
	"testing"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/mappingrule"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/pkg/worktest"
	"github.com/doorward/doorward/services/directory"
	"github.com/doorward/doorward/services/directory/store"
)

// The provider of a login is known without a query while nothing changes. A change
// shows at once in the process that made it, and in the others as soon as PostgreSQL
// has reported it.
func TestAChangeOfAProviderShowsAtOnceHereAndSoonElsewhere(t *testing.T) {
	t.Parallel()
	svc, db, ring, tenant := sealing(t)
	at := id.Ref{Tenant: tenant, ID: samlDirectory(t, svc, tenant, samlKeys(t, now()), rule("title", "customData.title"))}
	stores := make([]*store.Store, 2)
	for i := range stores {
		replica := &pg.DB{Pool: db.Pool}
		stores[i] = store.New(replica, now)
		worktest.Start(t, replica.Listen)
	}
	here := directory.New(stores[0], secure.NewPasswords(cheap, 2, 1000), ring, "https://localhost:8443/v1", now, directory.Config{})

	provider := func(s *store.Store) store.AccountProvider {
		t.Helper()
		p, err := s.AccountProvider(t.Context(), at.Tenant, at.ID)
		if err != nil && !errors.Is(err, apierr.NotFound) {
			t.Fatal(err)
		}
		return p
	}
	loginProvider := func(s *store.Store) (p store.LoginProvider) {
		t.Helper()
		list, err := s.LoginProviders(t.Context(), at.Tenant, []id.ID{at.ID, id.New(now())})
		if err != nil || len(list) > 1 {
			t.Fatalf("of one directory and none are %d, %v", len(list), err)
		}
		if len(list) == 1 {
			p = list[0]
		}
		return p
	}
	// Two look-ups share the settings of a provider once it is kept.
	isKept := func(s *store.Store) bool {
		first, ofLogin := provider(s).Settings.SSOLoginURL, loginProvider(s).Settings.SSOLoginURL
		return first == provider(s).Settings.SSOLoginURL && ofLogin == loginProvider(s).Settings.SSOLoginURL
	}
	enabled, disabled := field.Some(directoryapi.Enabled), field.Some(directoryapi.Disabled)
	for _, c := range []struct {
		what   string
		change func() error
		shows  func(store.AccountProvider) bool
	}{
		{"another address", func() error {
			_, err := here.UpdateProvider(t.Context(), at, directory.NewProvider{SSOLoginURL: field.Some("https://idp.test/other")})
			return err
		}, func(p store.AccountProvider) bool { return *p.Settings.SSOLoginURL == "https://idp.test/other" }},
		{"the directory is disabled", func() error {
			_, err := here.UpdateDirectory(t.Context(), at, directory.NewDirectory{Status: disabled})
			return err
		}, func(p store.AccountProvider) bool { return p.DirectoryStatus == directoryapi.Disabled }},
		{"the directory is enabled", func() error {
			_, err := here.UpdateDirectory(t.Context(), at, directory.NewDirectory{Status: enabled})
			return err
		}, func(p store.AccountProvider) bool { return p.DirectoryStatus == directoryapi.Enabled }},
		{"no mapping rules", func() error {
			rules := id.Ref{Tenant: tenant, ID: provider(stores[0]).MappingRulesID}
			_, err := here.UpdateMappingRules(mappingrule.AttributeStatement)(t.Context(), rules,
				mappingrule.Change{Items: field.Some([]mappingrule.NewRule{})})
			return err
		}, func(p store.AccountProvider) bool { return len(p.Rules) == 0 }},
		{"the directory is deleted", func() error {
			_, err := here.DeleteDirectory(t.Context(), at)
			return err
		}, func(p store.AccountProvider) bool { return p.DirectoryID.IsZero() }},
	} {
		for _, s := range stores {
			for !isKept(s) {
				runtime.Gosched()
			}
			if c.shows(provider(s)) {
				t.Fatalf("%s: it shows before it happens", c.what)
			}
		}
		if err := c.change(); err != nil {
			t.Fatalf("%s: %v", c.what, err)
		}
		if !c.shows(provider(stores[0])) {
			t.Errorf("%s: the process that changed it does not see it", c.what)
		}
		for !c.shows(provider(stores[1])) {
			runtime.Gosched()
		}
		for i, s := range stores {
			p := provider(s)
			isSame := func() bool { q := loginProvider(s); return q.ID == p.DirectoryID && q.Status == p.DirectoryStatus }
			if i == 0 && !isSame() {
				t.Errorf("%s: the sign-in page does not show it", c.what)
			}
			for !isSame() {
				runtime.Gosched()
			}
		}
	}
}
