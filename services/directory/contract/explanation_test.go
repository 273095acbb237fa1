package contract_test

import (
	"testing"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/id"
)

func explainedLogins(t *testing.T, s subject) {
	n, other := newTenant(t, s), newTenant(t, s)
	first, second, closed := n.directory(t, "First"), n.directory(t, "Second"), n.directory(t, "Closed")
	group, idle := n.group(t, second, "Staff"), n.group(t, second, "Idle")
	jo := n.account(t, first, "jo@example.test", named("Jo"))
	n.account(t, second, "jo@example.test")
	sam := n.account(t, second, "sam@example.test", inGroup(group))
	eve := n.account(t, second, "eve@example.test", inGroup(idle))
	off := n.account(t, first, "idle@example.test", status("DISABLED"))
	fresh := n.account(t, first, "new@example.test", status("UNVERIFIED"))
	shut := n.account(t, closed, "shut@example.test")
	s.DisableDirectory(t, n.ref(closed))
	s.DisableGroup(t, n.ref(idle))
	copied := must(s.API.LinkedAccount(t.Context(), directoryapi.LinkedAccountRequest{
		Tenant: n.id, Account: jo.ID, Store: directoryapi.Store{Kind: directoryapi.Directories, ID: n.administrators},
		Provision: true,
	}))(t).Account

	ofDirectory := func(v id.ID) directoryapi.Store { return directoryapi.Store{Kind: directoryapi.Directories, ID: v} }
	ofGroup := func(v id.ID) directoryapi.Store { return directoryapi.Store{Kind: directoryapi.Groups, ID: v} }
	for _, c := range []struct {
		what, login string
		in          []directoryapi.Store
		who         id.ID // zero: nobody
		store       directoryapi.Store
		want        *apierr.Error
	}{
		{"the first store decides", "JO@example.test", []directoryapi.Store{ofDirectory(first), ofDirectory(second)}, jo.ID,
			ofDirectory(first),
			nil},
		{"a store without the login does not", "jo", []directoryapi.Store{ofDirectory(second), ofDirectory(first)}, jo.ID,
			ofDirectory(first),
			nil},
		{"a group has its members", "sam@example.test", []directoryapi.Store{ofGroup(group)}, sam.ID, ofGroup(group), nil},
		{
			"a group has nobody else", "jo@example.test", []directoryapi.Store{ofGroup(group)}, id.ID{}, directoryapi.Store{},
			apierr.NoSuchAccount,
		},
		{
			"an unknown login", "nobody", []directoryapi.Store{ofDirectory(first)}, id.ID{}, directoryapi.Store{},
			apierr.NoSuchAccount,
		},
		{"no store", "jo", nil, id.ID{}, directoryapi.Store{}, apierr.NoSuchAccount},
		{"another tenant's store", "owner@example.test", []directoryapi.Store{ofDirectory(other.administrators)}, id.ID{},
			directoryapi.Store{},
			apierr.NoSuchAccount},
		{
			"a disabled account", "idle@example.test", []directoryapi.Store{ofDirectory(first)}, off.ID, ofDirectory(first),
			apierr.AccountDisabled,
		},
		{"an unverified account", "new@example.test", []directoryapi.Store{ofDirectory(first)}, fresh.ID, ofDirectory(first),
			apierr.AccountUnverified},
		{"a disabled directory", "shut@example.test", []directoryapi.Store{ofDirectory(closed)}, shut.ID, ofDirectory(closed),
			apierr.DirectoryDisabled},
		{
			"a disabled group", "eve@example.test", []directoryapi.Store{ofGroup(idle)}, eve.ID, ofGroup(idle),
			apierr.GroupDisabled,
		},
		{"an account without a password", "Jo", []directoryapi.Store{ofDirectory(n.administrators)}, copied.ID,
			ofDirectory(n.administrators),
			apierr.WrongPassword},
	} {
		t.Run(c.what, func(t *testing.T) {
			got := must(s.API.ExplainLogin(t.Context(),
				directoryapi.ExplainLogin{Tenant: n.id, Stores: c.in, Login: c.login}))(t)
			var found directoryapi.Authenticated
			if got.Found != nil {
				found = *got.Found
			}
			wantEqual(t, "whose password would be compared", found.Account.ID, c.who)
			wantEqual(t, "the store that decides", found.Store, c.store)
			code := 0
			if got.Refusal != nil {
				code = got.Refusal.Code
			}
			want := 0
			if c.want != nil {
				want = c.want.Code
			}
			wantEqual(t, "the code of the refusal", code, want)
		})
	}
	t.Run("stores have their names", func(t *testing.T) {
		in := []directoryapi.Store{ofDirectory(first), ofGroup(idle), ofDirectory(closed), ofDirectory(first),
			ofDirectory(NewID()),
			ofGroup(first), ofDirectory(other.administrators)}
		got := must(s.API.ExplainLogin(t.Context(), directoryapi.ExplainLogin{Tenant: n.id, Stores: in, Login: "jo"}))(t)
		want := map[directoryapi.Store]directoryapi.NamedStore{
			in[0]: {Store: in[0], Name: "First", Status: directoryapi.Enabled, DirectoryID: first,
				ProviderID: directoryapi.Native, Directory: "First"},
			in[1]: {Store: in[1], Name: "Idle", Status: directoryapi.Disabled, DirectoryID: second,
				ProviderID: directoryapi.Native, Directory: "Second"},
			in[2]: {Store: in[2], Name: "Closed", Status: directoryapi.Disabled, DirectoryID: closed,
				ProviderID: directoryapi.Native, Directory: "Closed"},
		}
		wantEqual(t, "the number of stores", len(got.Stores), len(want))
		for _, store := range got.Stores {
			wantEqual(t, "one of the stores", store, want[store.Store])
		}
	})
}
