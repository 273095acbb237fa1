package contract_test

import (
	"testing"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
)

func directories(t *testing.T, s subject) {
	n, other := newTenant(t, s), newTenant(t, s)

	t.Run("a new one is enabled", func(t *testing.T) {
		in := directoryapi.CreateDirectory{Tenant: n.id, ID: NewID(), Name: "Shop Directory"}
		made := must(s.API.CreateDirectory(t.Context(), in))(t)
		read := must(s.API.Directory(t.Context(), n.ref(in.ID)))(t)
		for what, d := range map[string]directoryapi.Directory{"made": made, "read": read} {
			wantEqual(t, what+", the id", d.ID, in.ID)
			wantEqual(t, what+", the tenant", d.TenantID, n.id)
			wantEqual(t, what+", the name", d.Name, in.Name)
			wantEqual(t, what+", the status", d.Status, directoryapi.Enabled)
			wantEqual(t, what+", builtin", d.Builtin, false)
		}
		t.Run("a repeated call returns it", func(t *testing.T) {
			wantEqual(t, "the directory", must(s.API.CreateDirectory(t.Context(), in))(t), made)
		})
		t.Run("its name is taken, in any case", func(t *testing.T) {
			wantError(s.API.CreateDirectory(t.Context(),
				directoryapi.CreateDirectory{Tenant: n.id, ID: NewID(), Name: "SHOP directory"}))(t,
				apierr.Exists)
		})
		t.Run("its name is free in another tenant", func(t *testing.T) {
			other.directory(t, in.Name)
		})
		t.Run("another tenant cannot see it", func(t *testing.T) {
			wantError(s.API.Directory(t.Context(), other.ref(in.ID)))(t, apierr.NotFound)
		})
		t.Run("another tenant cannot delete it", func(t *testing.T) {
			wantError(s.API.DeleteDirectory(t.Context(), other.ref(in.ID)))(t, apierr.NotFound)
			must(s.API.Directory(t.Context(), n.ref(in.ID)))(t)
		})
	})
	t.Run("of parallel calls for one name one succeeds", func(t *testing.T) {
		wantOneSuccess(t, 4, apierr.Exists, func(int) error {
			_, err := s.API.CreateDirectory(t.Context(),
				directoryapi.CreateDirectory{Tenant: n.id, ID: NewID(), Name: "Contended"})
			return err
		})
	})
	t.Run("a deleted one is gone with its accounts", func(t *testing.T) {
		d := n.directory(t, "Gone")
		account := n.account(t, d, "jo@example.test")
		must(s.API.DeleteDirectory(t.Context(), n.ref(d)))(t)
		wantError(s.API.Directory(t.Context(), n.ref(d)))(t, apierr.NotFound)
		wantError(s.API.Account(t.Context(), n.ref(account.ID)))(t, apierr.NotFound)
		wantError(s.API.DeleteDirectory(t.Context(), n.ref(d)))(t, apierr.NotFound)
		n.directory(t, "Gone") // its name is free
	})
	t.Run("the administrators directory stays", func(t *testing.T) {
		wantError(s.API.DeleteDirectory(t.Context(), n.ref(n.administrators)))(t, apierr.BadRequest)
		must(s.API.Account(t.Context(), n.ref(n.owner.ID)))(t)
	})
	t.Run("one that never was is not found", func(t *testing.T) {
		wantError(s.API.Directory(t.Context(), n.ref(NewID())))(t, apierr.NotFound)
		wantError(s.API.DeleteDirectory(t.Context(), n.ref(NewID())))(t, apierr.NotFound)
	})
}
