package contract_test

import (
	"slices"
	"testing"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/id"
)

func accesses(t *testing.T, s subject) {
	n, other := newTenant(t, s), newTenant(t, s)
	open, second, closed := n.directory(t, "Open"), n.directory(t, "Second"), n.directory(t, "Closed")
	jo := n.account(t, open, "jo@example.test")
	idle := n.account(t, open, "idle@example.test", status("DISABLED"))
	unverified := n.account(t, open, "new@example.test", status("UNVERIFIED"))
	shut := n.account(t, closed, "shut@example.test")
	idleAndShut := n.account(t, closed, "idle@example.test", status("DISABLED"))
	gone := n.directory(t, "Gone")
	deleted := n.account(t, gone, "deleted@example.test")
	must(s.API.DeleteDirectory(t.Context(), n.ref(gone)))(t)
	s.DisableDirectory(t, n.ref(closed))

	for _, c := range []struct {
		what    string
		account id.ID
		in      []id.ID
		want    error
	}{
		{"an enabled account in a store", jo.ID, []id.ID{second, open}, nil},
		{"a disabled account", idle.ID, []id.ID{open}, apierr.TokenAccountDisabled},
		{"an unverified account", unverified.ID, []id.ID{open}, apierr.TokenAccountDisabled},
		{"a deleted account", deleted.ID, []id.ID{gone}, apierr.TokenAccountDisabled},
		{"an account that never was", NewID(), []id.ID{open}, apierr.TokenAccountDisabled},
		{"another tenant's account", other.owner.ID, []id.ID{other.administrators}, apierr.TokenAccountDisabled},
		{"an account in a disabled store", shut.ID, []id.ID{open, closed}, apierr.TokenStoreDisabled},
		{"an account in none of the stores", jo.ID, []id.ID{second, closed}, apierr.TokenAccountUnreachable},
		{"an account where there are no stores", jo.ID, nil, apierr.TokenAccountUnreachable},
		{"a disabled directory that is none of the stores", shut.ID, []id.ID{open}, apierr.TokenAccountUnreachable},
		{"the account's own state goes first", idleAndShut.ID, []id.ID{closed}, apierr.TokenAccountDisabled},
		{
			"the account's own state goes first, also outside the stores", idle.ID, []id.ID{second}, apierr.TokenAccountDisabled,
		},
	} {
		t.Run(c.what, func(t *testing.T) {
			account, err := s.API.CheckAccess(t.Context(), directoryapi.CheckAccess{Tenant: n.id, Account: c.account, Stores: stores(c.in...)})
			wantError(account, err)(t, c.want)
			if c.want == nil {
				wantEqual(t, "the account", account.ID, c.account)
				wantEqual(t, "its directory", account.DirectoryID, jo.DirectoryID)
				wantEqual(t, "what it depends on", slices.Equal(account.DependsOn, []id.ID{c.account, jo.DirectoryID}), true)
				wantEqual(t, "its status", account.Status, directoryapi.Enabled)
				wantEqual(t, "when it was made", account.CreatedAt.Equal(jo.CreatedAt), true)
				wantEqual(t, "that its password has a time", account.PasswordModifiedAt != nil, true)
			}
		})
	}
}
