package contract_test

import (
	"context"
	"errors"
	"net/netip"
	"testing"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/services/directory/directorytest"
)

// login is a login with the suite's password.
func (n tenant) login(application id.ID, login string) applicationapi.Login {
	return applicationapi.Login{Tenant: n.id, Application: application, Login: login, Password: directorytest.Password}
}

func logins(t *testing.T, s subject) {
	n, other := newTenant(t, s), newTenant(t, s)
	first, second, unmapped, closed := n.directory(t, "First"), n.directory(t, "Second"), n.directory(t, "Unmapped"),
		n.directory(t, "Closed")
	shop := s.NewApplication(t, n.id)
	for _, directory := range []id.ID{first, second, closed} {
		s.Map(t, n.id, shop, directory)
	}
	jo := n.account(t, first, "jo@example.test", directoryapi.Enabled)
	secondJo := n.account(t, second, "jo@example.test", directoryapi.Enabled)
	sam := n.account(t, second, "sam@example.test", directoryapi.Enabled)
	n.account(t, unmapped, "ann@example.test", directoryapi.Enabled)
	n.account(t, first, "idle@example.test", directoryapi.Disabled)
	n.account(t, first, "new@example.test", directoryapi.Unverified)
	n.account(t, closed, "shut@example.test", directoryapi.Enabled)
	s.DisableDirectory(t, n.ref(closed))
	bare, disabled := s.NewApplication(t, n.id), s.NewApplication(t, n.id)
	s.Map(t, n.id, disabled, first)
	s.Disable(t, n.ref(disabled))

	in := func(kind string, v id.ID) func(*applicationapi.Login) {
		return func(in *applicationapi.Login) { in.AccountStore = s.Base.Link(kind, v) }
	}
	password := func(in *applicationapi.Login) { in.Password = "Wrong1234" }
	for _, c := range []struct {
		what        string
		application id.ID
		login       string
		change      func(*applicationapi.Login)
		who         id.ID
		want        error
	}{
		{"the first store that has the login decides", shop, "jo@example.test", nil, jo, nil},
		{"a later store is asked for a login that the first has not", shop, "SAM@example.test", nil, sam, nil},
		{"a named store is the only one", shop, "jo@example.test", in("directories", second), secondJo, nil},
		{"a named store without the login", shop, "sam@example.test", in("directories", first), id.ID{},
			apierr.NoSuchAccount},
		{"a named store that is not mapped", shop, "ann@example.test", in("directories", unmapped), id.ID{},
			apierr.NotMapped},
		{"a named store that never was", shop, "jo@example.test", in("directories", newID()), id.ID{}, apierr.Reference},
		{"a named store of another tenant", shop, "owner@example.test", in("directories", other.administrators), id.ID{},
			apierr.Reference},
		{"a named store of another kind", shop, "jo@example.test", in("accounts", jo), id.ID{}, apierr.Reference},
		{"a named store of another deployment", shop, "jo@example.test", func(in *applicationapi.Login) {
			in.AccountStore = href.Base("https://elsewhere.example/v1").Link("directories", first)
		}, id.ID{}, apierr.Reference},
		{"an organization that never was", shop, "jo@example.test", func(in *applicationapi.Login) { in.NameKey = "nobody" },
			id.ID{}, apierr.Reference},
		{"a store that is not mapped", shop, "ann@example.test", nil, id.ID{}, apierr.NoSuchAccount},
		{"an unknown login", shop, "nobody@example.test", nil, id.ID{}, apierr.NoSuchAccount},
		{"a wrong password", shop, "jo@example.test", password, id.ID{}, apierr.WrongPassword},
		{"a disabled account", shop, "idle@example.test", nil, id.ID{}, apierr.AccountDisabled},
		{"an unverified account", shop, "new@example.test", nil, id.ID{}, apierr.AccountUnverified},
		{"a disabled directory", shop, "shut@example.test", nil, id.ID{}, apierr.DirectoryDisabled},
		{"an application without stores", bare, "jo@example.test", nil, id.ID{}, apierr.NoStores},
		{"a named store, where there are none", bare, "jo@example.test", in("directories", first), id.ID{}, apierr.NotMapped},
		{"a disabled application", disabled, "jo@example.test", nil, id.ID{}, apierr.NoSuchAccount},
		{"a disabled application, with a wrong password", disabled, "jo@example.test", password, id.ID{},
			apierr.NoSuchAccount},
		{"a disabled application, whatever store is named", disabled, "jo@example.test", in("directories", newID()), id.ID{},
			apierr.NoSuchAccount},
		{"an application that never was", newID(), "jo@example.test", nil, id.ID{}, apierr.NotFound},
		{"an application of another tenant", other.signUp.Console, "owner@example.test", nil, id.ID{}, apierr.NotFound},
	} {
		t.Run(c.what, func(t *testing.T) {
			request := n.login(c.application, c.login)
			if c.change != nil {
				c.change(&request)
			}
			in, err := s.API.Login(t.Context(), request)
			refuse(in, err)(t, c.want)
			if c.want == nil {
				equal(t, "who logged in", in.Account.ID, c.who)
			}
		})
	}
	t.Run("too many wrong passwords", func(t *testing.T) {
		request := n.login(shop, "ann@example.test")
		from := func(address string) context.Context {
			return caller.Into(t.Context(), caller.Caller{Tenant: n.id, Address: netip.MustParseAddr(address)})
		}
		tries, refusal := 0, apierr.NoSuchAccount
		for ; errors.Is(refusal, apierr.NoSuchAccount); tries++ {
			_, err := s.API.Login(from("203.0.113.1"), request)
			refusal = apierr.From(err)
		}
		if !errors.Is(refusal, apierr.TooMany) || refusal.RetryAfter <= 0 || tries > 100 {
			t.Errorf("after %d tries the refusal is %+v", tries, refusal)
		}
		_, err := s.API.Login(from("203.0.113.2"), request)
		refuse(applicationapi.LoggedIn{}, err)(t, apierr.NoSuchAccount)
	})
}
