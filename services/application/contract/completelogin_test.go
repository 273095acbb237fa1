package contract_test

import (
	"testing"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/id"
)

func completedLogins(t *testing.T, s subject) {
	n, other := newTenant(t, s), newTenant(t, s)
	first, second, unmapped := n.directory(t, "First"), n.directory(t, "Second"), n.directory(t, "Unmapped")
	shop, disabled := s.NewApplication(t, n.id), s.NewApplication(t, n.id)
	s.Map(t, n.id, shop, first)
	s.Map(t, n.id, shop, second)
	s.Map(t, n.id, disabled, first)
	s.Disable(t, n.ref(disabled))
	jo := n.account(t, first, "jo@example.test", directoryapi.Enabled)
	idle := n.account(t, first, "idle@example.test", directoryapi.Disabled)
	stranger := n.account(t, unmapped, "ann@example.test", directoryapi.Enabled)

	in := func(directory id.ID) func(*applicationapi.CompleteLogin) {
		return func(in *applicationapi.CompleteLogin) { in.AccountStore = s.Base.Link("directories", directory) }
	}
	for _, c := range []struct {
		what                 string
		application, account id.ID
		change               func(*applicationapi.CompleteLogin)
		want                 error
	}{
		{"an enabled account in a store", shop, jo, nil, nil},
		{"an enabled account in a named store", shop, jo, in(first), nil},
		{"an account outside of the named store", shop, jo, in(second), apierr.TokenAccountUnreachable},
		{"a named store that is not mapped", shop, jo, in(unmapped), apierr.NotMapped},
		{"a named store that never was", shop, jo, in(newID()), apierr.Reference},
		{"a named store of another tenant", shop, jo, in(other.administrators), apierr.Reference},
		{"an organization that never was", shop, jo, func(in *applicationapi.CompleteLogin) { in.NameKey = "nobody" },
			apierr.Reference},
		{"a disabled account", shop, idle, nil, apierr.TokenAccountDisabled},
		{"an account that never was", shop, newID(), nil, apierr.TokenAccountDisabled},
		{"an account of another tenant", shop, other.owner, nil, apierr.TokenAccountDisabled},
		{"an account in no store of the application", shop, stranger, nil, apierr.TokenAccountUnreachable},
		{"a disabled application", disabled, jo, nil, apierr.TokenApplicationDisabled},
		{"a disabled application, whatever store is named", disabled, jo, in(newID()), apierr.TokenApplicationDisabled},
		{"an application that never was", newID(), jo, nil, apierr.NotFound},
		{"an application of another tenant", other.signUp.Console, jo, nil, apierr.NotFound},
	} {
		t.Run(c.what, func(t *testing.T) {
			request := applicationapi.CompleteLogin{Tenant: n.id, Application: c.application, Account: c.account}
			if c.change != nil {
				c.change(&request)
			}
			in, err := s.API.CompleteLogin(t.Context(), request)
			refuse(in, err)(t, c.want)
			if c.want == nil {
				equal(t, "who is let in", in.Account.ID, c.account)
				equal(t, "the organization, as none is named", in.Organization.IsZero(), true)
			}
		})
	}
}

func links(t *testing.T, s subject) {
	n := newTenant(t, s)
	away, home := n.directory(t, "Away"), n.directory(t, "Home")
	shop, plain := s.NewApplication(t, n.id), s.NewApplication(t, n.id)
	s.Map(t, n.id, shop, away)
	s.Map(t, n.id, plain, away)
	s.Map(t, n.id, plain, home)
	s.FollowLinks(t, n.id, shop, home)
	jo, resident := n.account(t, away, "jo@example.test", directoryapi.Enabled),
		n.account(t, home, "resident@example.test", directoryapi.Enabled)
	s.Link(t, n.ref(jo), n.ref(resident))
	sam, idle := n.account(t, away, "sam@example.test", directoryapi.Enabled),
		n.account(t, home, "idle@example.test", directoryapi.Disabled)
	s.Link(t, n.ref(sam), n.ref(idle))

	t.Run("are followed to the default account store", func(t *testing.T) {
		equal(t, "who logs in", must(s.API.Login(t.Context(), n.login(shop, "jo@example.test")))(t).Account.ID, resident)
		admit := applicationapi.CompleteLogin{Tenant: n.id, Application: shop, Account: jo}
		equal(t, "who is admitted", must(s.API.CompleteLogin(t.Context(), admit))(t).Account.ID, resident)
	})
	t.Run("are not followed from it", func(t *testing.T) {
		equal(t, "who logs in", must(s.API.Login(t.Context(), n.login(shop, "resident@example.test")))(t).Account.ID,
			resident)
	})
	t.Run("are not followed where the policy is off", func(t *testing.T) {
		equal(t, "who logs in", must(s.API.Login(t.Context(), n.login(plain, "jo@example.test")))(t).Account.ID, jo)
		admit := applicationapi.CompleteLogin{Tenant: n.id, Application: plain, Account: jo}
		equal(t, "who is admitted", must(s.API.CompleteLogin(t.Context(), admit))(t).Account.ID, jo)
	})
	t.Run("end at an account that may not log in", func(t *testing.T) {
		refuse(s.API.Login(t.Context(), n.login(shop, "sam@example.test")))(t, apierr.AccountDisabled)
		disabled := applicationapi.CompleteLogin{Tenant: n.id, Application: shop, Account: sam}
		refuse(s.API.CompleteLogin(t.Context(), disabled))(t, apierr.AccountDisabled)
	})
}
