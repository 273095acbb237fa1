package contract_test

import (
	"testing"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
)

func logins(t *testing.T, s subject) {
	n, other := newTenant(t, s), newTenant(t, s)
	first, second, closed := n.directory(t, "First"), n.directory(t, "Second"), n.directory(t, "Closed")
	jo := n.account(t, first, "jo@example.test",
		func(in *directoryapi.CreateAccount) { in.Account.Username = field.Some("Jo") })
	otherJo := n.account(t, second, "jo@example.test",
		func(in *directoryapi.CreateAccount) { in.Account.Password = field.Some("Different1!") })
	sam := n.account(t, first, "sam@example.test",
		func(in *directoryapi.CreateAccount) { in.Account.Username = field.Some("sam") })
	wantError(s.API.CreateAccount(t.Context(),
		n.newAccount(first, "other@example.test", func(in *directoryapi.CreateAccount) {
			in.Account.Username, in.Account.Password = field.Some("SAM@example.test"), field.Some("Different1!")
		})))(t, apierr.Exists)
	n.account(t, first, "idle@example.test", status("DISABLED"))
	n.account(t, first, "new@example.test", status("UNVERIFIED"))
	shut := n.account(t, closed, "shut@example.test")
	s.DisableDirectory(t, n.ref(closed))

	for _, c := range []struct {
		what, login, password string
		in                    []id.ID
		who                   id.ID
		want                  error
	}{
		{"by email", "jo@example.test", Password, []id.ID{first}, jo.ID, nil},
		{"by user name", "Jo", Password, []id.ID{first}, jo.ID, nil},
		{"in any case", "JO@EXAMPLE.TEST", Password, []id.ID{first}, jo.ID, nil},
		{"the first store decides", "jo@example.test", Password, []id.ID{first, second}, jo.ID, nil},
		{"in another order another store decides", "jo@example.test", "Different1!", []id.ID{second, first}, otherJo.ID, nil},
		{"a wrong password is not tried in a later store", "jo@example.test", "Different1!", []id.ID{first, second}, id.ID{},
			apierr.WrongPassword},
		{"a store without the login does not decide", "Jo", Password, []id.ID{second, first}, jo.ID, nil},
		{"an email that another wanted as user name", "sam@example.test", Password, []id.ID{first}, sam.ID, nil},
		{"an unknown login", "nobody@example.test", Password, []id.ID{first, second}, id.ID{}, apierr.NoSuchAccount},
		{"an empty login", "", Password, []id.ID{first}, id.ID{}, apierr.NoSuchAccount},
		{"a login that no account can have", "jo\x00", Password, []id.ID{first}, id.ID{}, apierr.NoSuchAccount},
		{"no store", "jo@example.test", Password, nil, id.ID{}, apierr.NoSuchAccount},
		{"a store that is not there", "jo@example.test", Password, []id.ID{NewID()}, id.ID{}, apierr.NoSuchAccount},
		{
			"another tenant's store", "owner@example.test", Password, []id.ID{other.administrators}, id.ID{},
			apierr.NoSuchAccount,
		},
		{"a wrong password", "jo@example.test", "Wrong1234", []id.ID{first}, id.ID{}, apierr.WrongPassword},
		{"no password", "jo@example.test", "", []id.ID{first}, id.ID{}, apierr.WrongPassword},
		{"a password in another case", "jo@example.test", "cHANGEME1!", []id.ID{first}, id.ID{}, apierr.WrongPassword},
		{"a disabled account", "idle@example.test", Password, []id.ID{first}, id.ID{}, apierr.AccountDisabled},
		{"a disabled account shows only with the right password", "idle@example.test", "Wrong1234", []id.ID{first}, id.ID{},
			apierr.WrongPassword},
		{"an unverified account", "new@example.test", Password, []id.ID{first}, id.ID{}, apierr.AccountUnverified},
		{"an unverified account shows only with the right password", "new@example.test", "Wrong1234", []id.ID{first}, id.ID{},
			apierr.WrongPassword},
		{"a disabled directory", shut.Email, Password, []id.ID{closed}, id.ID{}, apierr.DirectoryDisabled},
		{
			"a disabled directory shows only to who knows a password", shut.Email, "Wrong1234", []id.ID{closed}, id.ID{},
			apierr.WrongPassword,
		},
	} {
		t.Run(c.what, func(t *testing.T) {
			in, err := s.API.Authenticate(t.Context(), directoryapi.Authenticate{
				Tenant: n.id, Stores: stores(c.in...), Login: c.login, Password: secret(c.password),
			})
			wantError(in, err)(t, c.want)
			if c.want == nil {
				wantEqual(t, "who logged in", in.Account.ID, c.who)
				wantEqual(t, "the store that decided", in.Store,
					directoryapi.Store{Kind: directoryapi.Directories, ID: in.Account.DirectoryID})
			}
		})
	}
}
