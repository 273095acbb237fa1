package contract_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/services/directory/directorytest"
)

func hostedLogins(t *testing.T, s subject) {
	n, other := newTenant(t, s), newTenant(t, s)
	first, second := n.directory(t, "First"), n.directory(t, "Second")
	shop, bare := s.NewApplication(t, n.id), s.NewApplication(t, n.id)
	s.Map(t, n.id, shop, second)
	s.FollowLinks(t, n.id, shop, first) // makes it the default store
	where := applicationapi.LoginTarget{Tenant: n.id, Application: shop}

	t.Run("an application is found by its label in any letter case", func(t *testing.T) {
		label := must(s.API.Application(t.Context(), n.ref(shop)))(t).DNSLabel
		found := must(s.API.ApplicationByDNSLabel(t.Context(), applicationapi.DNSLabel{Label: strings.ToUpper(label)}))(t)
		equal(t, "the application", found.ID, shop)
		for _, unknown := range []string{"", "nobody-" + label} {
			refuse(s.API.ApplicationByDNSLabel(t.Context(), applicationapi.DNSLabel{Label: unknown}))(t, apierr.NotFound)
		}
	})
	t.Run("the stores of a login are in its order", func(t *testing.T) {
		found := must(s.API.LoginDirectories(t.Context(), where))(t)
		if !slices.Equal(found.Directories, []id.ID{second, first}) || found.Default != first ||
			found.Status != directoryapi.Enabled {
			t.Errorf("the stores are %+v", found)
		}
		empty := must(s.API.LoginDirectories(t.Context(), applicationapi.LoginTarget{Tenant: n.id, Application: bare}))(t)
		if len(empty.Directories) != 0 || !empty.Default.IsZero() {
			t.Errorf("an application without stores has %+v", empty)
		}
		s.Map(t, n.id, bare, n.directory(t, "Third"))
		s.Disable(t, n.ref(bare))
		disabled := must(s.API.LoginDirectories(t.Context(), applicationapi.LoginTarget{Tenant: n.id, Application: bare}))(t)
		if disabled.Status != directoryapi.Disabled || len(disabled.Directories) != 0 || !disabled.Default.IsZero() {
			t.Errorf("a disabled application has %+v", disabled)
		}
		named := where
		named.NameKey = "nobody"
		refuse(s.API.LoginDirectories(t.Context(), named))(t, apierr.Reference)
		refuse(s.API.LoginDirectories(t.Context(), applicationapi.LoginTarget{Tenant: other.id, Application: shop}))(t,
			apierr.NotFound)
	})
	t.Run("a registration is in the default store", func(t *testing.T) {
		in := applicationapi.Register{LoginTarget: where, Account: directoryapi.NewAccount{
			Email: field.Some("new@example.test"), GivenName: field.Some("Jo"), Surname: field.Some("Doe"),
			Password: field.Some(directorytest.Password), Status: field.Some(directoryapi.Disabled),
		}}
		made := must(s.API.Register(t.Context(), in))(t)
		equal(t, "the directory", made.DirectoryID, first)
		equal(t, "the status, which is not the caller's", made.Status, directoryapi.Enabled)
		refuse(s.API.Register(t.Context(), in))(t, apierr.Exists)
		in.AccountStore = s.Base.Link("directories", second)
		named := must(s.API.Register(t.Context(), in))(t)
		equal(t, "the named directory", named.DirectoryID, second)
		reached := must(s.API.AccountApplications(t.Context(), n.ref(named.ID)))(t)
		if len(reached.Items) != 1 || reached.Items[0].ID != shop {
			t.Errorf("the applications of the account are %+v", reached.Items)
		}
		refuse(s.API.AccountApplications(t.Context(), other.ref(named.ID)))(t, apierr.NotFound)
	})
	t.Run("a mail is for a login of the application", func(t *testing.T) {
		name := func(login string) applicationapi.LoginName {
			return applicationapi.LoginName{LoginTarget: where, Login: login}
		}
		must(s.API.RequestReset(t.Context(), name("new@example.test")))(t)
		refuse(s.API.RequestReset(t.Context(), name("nobody@example.test")))(t, apierr.NoSuchResource)
		refuse(s.API.RequestVerification(t.Context(), name("nobody@example.test")))(t, apierr.NoSuchResource)
		refuse(s.API.RequestVerification(t.Context(), name("new@example.test")))(t, apierr.VerificationDisabled)
	})
	t.Run("the account of a login name is one of the application", func(t *testing.T) {
		login := applicationapi.LoginName{LoginTarget: where, Login: "NEW@example.test"}
		equal(t, "the account", must(s.API.LoginAccount(t.Context(), login))(t).Email, "new@example.test")
		login.Login = "nobody@example.test"
		refuse(s.API.LoginAccount(t.Context(), login))(t, apierr.NotFound)
	})
	t.Run("a browser is anonymous", func(t *testing.T) {
		for range directoryapi.MaxAnonymousMails + 3 {
			must(s.API.RequestReset(t.Context(), applicationapi.LoginName{LoginTarget: where, Login: "new@example.test"}))(t)
		}
		in := directoryapi.RequestReset{
			Tenant: n.id, Application: shop, Login: "new@example.test", Anonymous: true,
			Stores: []directoryapi.Store{{Kind: directoryapi.Directories, ID: second},
				{Kind: directoryapi.Directories, ID: first}},
		}
		equal(t, "the token of one more mail", must(s.Directories.RequestReset(t.Context(), in))(t).Token, "")
	})
}

func homes(t *testing.T, s subject) {
	n, other := newTenant(t, s), newTenant(t, s)
	found := func() []id.ID {
		t.Helper()
		var ids []id.ID
		for _, a := range must(s.API.Homes(t.Context(), applicationapi.Homes{Tenant: n.id}))(t).Items {
			ids = append(ids, a.ID)
		}
		return ids
	}
	s.NewApplication(t, n.id) // has no home
	s.SetHome(t, n.ref(n.signUp.Console), "https://console.example.test/")
	s.SetHome(t, other.ref(s.NewApplication(t, other.id)), "https://other.example.test/")
	if got := found(); len(got) != 0 {
		t.Errorf("the homes of a tenant without any are %v", got)
	}
	made := map[id.ID]bool{}
	for range applicationapi.MaxHomes + 2 {
		v := s.NewApplication(t, n.id)
		s.SetHome(t, n.ref(v), "https://shop.example.test/")
		made[v] = true
	}
	for range 3 { // more than there are above MaxHomes
		got := found()
		if len(got) != min(len(made), applicationapi.MaxHomes) {
			t.Errorf("of %d homes %d are found", len(made), len(got))
		}
		for _, v := range got {
			if !made[v] {
				t.Errorf("%v is among the homes, want only %v", v, made)
			}
		}
		s.Disable(t, n.ref(got[0]))
		delete(made, got[0])
	}
}

func resets(t *testing.T, s subject) {
	n := newTenant(t, s)
	directory, shop := n.directory(t, "First"), s.NewApplication(t, n.id)
	s.Map(t, n.id, shop, directory)
	jo := n.account(t, directory, "jo@example.test", directoryapi.Enabled)
	reset := must(s.Directories.RequestReset(t.Context(), directoryapi.RequestReset{
		Tenant: n.id, Application: shop, Login: "jo@example.test",
		Stores: []directoryapi.Store{{Kind: directoryapi.Directories, ID: directory}},
	}))(t)
	token := applicationapi.ResetToken{Tenant: n.id, Application: shop, Token: reset.Token}

	equal(t, "the account", must(s.API.CheckReset(t.Context(), token))(t).Account.ID, jo)
	unknown := token
	unknown.Token = "x"
	refuse(s.API.CheckReset(t.Context(), unknown))(t, apierr.NotFound)
	refuse(s.API.ResetPassword(t.Context(), applicationapi.ResetPassword{ResetToken: token, Password: "short"}))(t,
		apierr.TooShort)
	must(s.API.ResetPassword(t.Context(), applicationapi.ResetPassword{ResetToken: token, Password: "Different1!"}))(t)
	refuse(s.API.CheckReset(t.Context(), token))(t, apierr.NotFound)
	login := n.login(shop, "jo@example.test")
	refuse(s.API.Login(t.Context(), login))(t, apierr.WrongPassword)
	login.Password = "Different1!"
	equal(t, "who logs in", must(s.API.Login(t.Context(), login))(t).Account.ID, jo)
}
