package rest_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/services/application/applicationtest"
)

// entry is an application whose accounts are in another store than its default account store.
type entry struct {
	*client
	shop, policy, away, home string
	logins                   int
}

func newEntry(t *testing.T, c *client) *entry {
	t.Helper()
	n := c.count(t, "applications")
	e := &entry{client: c, shop: c.application(t, fmt.Sprint("Shop ", n)), away: c.directory(t, fmt.Sprint("Away ", n)),
		home: c.directory(t, fmt.Sprint("Home ", n))}
	e.policy = linked(t, c.get(t, e.shop), "accountLinkingPolicy")
	c.mapping(t, e.shop, e.away, nil)
	c.mapping(t, e.shop, e.home, object{"isDefaultAccountStore": true})
	return e
}

// person creates an account whose email is verified.
func (e *entry) person(t *testing.T, directory, email string) string {
	t.Helper()
	v := e.Account(t, e.tenant, idOf(t, directory), email)
	at := directoryapi.Ref{Tenant: e.tenant, ID: v}
	e.Directories.MarkVerified(t, at)
	return applicationtest.Base.To("accounts", v)
}

// email returns a new email.
func (e *entry) email() string {
	e.logins++
	return fmt.Sprintf("jo%d@example.test", e.logins)
}

// set changes a linking policy.
func (e *entry) set(t *testing.T, policy string, isOn, provision, byEmail bool) {
	t.Helper()
	status := map[bool]string{true: "ENABLED", false: "DISABLED"}
	property := map[bool]any{true: "email", false: nil}
	e.update(t, policy, object{"status": status[isOn], "automaticProvisioning": status[provision],
		"matchingProperty": property[byEmail]})
}

// login returns the href of the account that logs in, in a named store.
func (e *entry) login(t *testing.T, email string, store object) string {
	t.Helper()
	a := e.want(t, 200, "POST", e.shop+"/loginAttempts", e.attempt(email, store))
	who := linked(t, a.object(t), "account")
	if location := a.header.Get("Location"); location != who {
		t.Errorf("the Location is %q, want %q", location, who)
	}
	return who
}

func (e *entry) attempt(email string, store object) object {
	body := object{"type": "basic", "value": value(email, applicationtest.Password)}
	if store != nil {
		body["accountStore"] = store
	}
	return body
}

func (e *entry) link(t *testing.T, one, other string) {
	t.Helper()
	e.Directories.Link(t, e.ref(t, one), e.ref(t, other))
}

// The table of docs/interface/account-linking.md#outcome-at-login row by row, under
// a policy that is on and under one that is off.
func TestOutcomesAtLogin(t *testing.T) {
	t.Parallel()
	e := newEntry(t, open(t))
	const (
		itself   = "the account itself"
		resident = "that of the default store"
		copied   = "a copy"
	)
	for _, c := range []struct {
		provision, byEmail, sameEmail bool
		want                          string
	}{
		{false, false, false, itself},
		{false, false, true, itself},
		{false, true, false, itself},
		{false, true, true, resident},
		{true, false, false, copied},
		{true, false, true, itself},
		{true, true, false, copied},
		{true, true, true, resident},
	} {
		t.Run(fmt.Sprintf("provisioning %v, by email %v, same email %v", c.provision, c.byEmail, c.sameEmail),
			func(t *testing.T) {
				email := e.email()
				from, to := e.person(t, e.away, email), ""
				if c.sameEmail {
					to = e.person(t, e.home, email)
				}
				e.set(t, e.policy, false, c.provision, c.byEmail)
				if got := e.login(t, email, nil); got != from {
					t.Errorf("under a disabled policy %s logged in, want %s", got, from)
				}
				e.set(t, e.policy, true, c.provision, c.byEmail)
				got := e.login(t, email, nil)
				switch c.want {
				case itself:
					if got != from {
						t.Errorf("%s logged in, want %s", got, from)
					}
				case resident:
					if got != to {
						t.Errorf("%s logged in, want %s", got, to)
					}
				case copied:
					made, err := e.Directories.Account(t.Context(), e.ref(t, got))
					if err != nil || got == from || made.DirectoryID != idOf(t, e.home) || made.Email != email {
						t.Errorf("%+v logged in, want a copy: %v", made, err)
					}
				}
				if again := e.login(t, email, nil); again != got {
					t.Errorf("at the next login it was %s, want %s", again, got)
				}
				e.set(t, e.policy, true, false, false)
				if again := e.login(t, email, nil); again != got {
					t.Errorf("where links are only followed it was %s, want %s", again, got)
				}
				e.set(t, e.policy, false, true, true)
				if again := e.login(t, email, nil); again != from {
					t.Errorf("under a disabled policy again %s logged in, want %s", again, from)
				}
			})
	}
}

func TestLinksAtLogin(t *testing.T) {
	t.Parallel()
	e := newEntry(t, open(t))
	e.set(t, e.policy, true, false, false)

	t.Run("every way to log in follows them", func(t *testing.T) {
		email := e.email()
		from, to := e.person(t, e.away, email), e.person(t, e.home, e.email())
		e.link(t, to, from)
		for what, got := range map[string]string{"an attempt": e.login(t, email, nil),
			"an attempt in a named store": e.login(t, email, link(e.away))} {
			if got != to {
				t.Errorf("%s: %s logged in, want %s", what, got, to)
			}
		}
		ask := applicationapi.Login{Tenant: e.tenant, Application: idOf(t, e.shop), Login: email,
			Password: applicationtest.Password}
		if in, err := e.Service.Login(t.Context(), ask); err != nil || in.Account.ID != idOf(t, to) {
			t.Errorf("a peer's login: %s logged in, %v", in.Account.ID, err)
		}
		admit := applicationapi.CompleteLogin{Tenant: e.tenant, Application: idOf(t, e.shop), Account: idOf(t, from)}
		if in, err := e.Service.CompleteLogin(t.Context(), admit); err != nil || in.Account.ID != idOf(t, to) {
			t.Errorf("an account that is admitted: %s logged in, %v", in.Account.ID, err)
		}
		admit.AccountStore = applicationtest.Base.Link("directories", idOf(t, e.away))
		if in, err := e.Service.CompleteLogin(t.Context(), admit); err != nil || in.Account.ID != idOf(t, to) {
			t.Errorf("an account that is admitted in a named store: %s logged in, %v", in.Account.ID, err)
		}
		e.set(t, e.policy, false, false, false)
		if in, err := e.Service.CompleteLogin(t.Context(), admit); err != nil || in.Account.ID != idOf(t, from) {
			t.Errorf("admitted under a disabled policy: %s logged in, %v", in.Account.ID, err)
		}
		e.set(t, e.policy, true, false, false)
	})
	t.Run("an account of the default store is itself", func(t *testing.T) {
		email := e.email()
		from := e.person(t, e.home, email)
		e.link(t, from, e.person(t, e.away, e.email()))
		if got := e.login(t, email, nil); got != from {
			t.Errorf("%s logged in, want %s", got, from)
		}
	})
	t.Run("the account they lead to must be allowed to log in", func(t *testing.T) {
		for status, code := range map[string]int{"DISABLED": 7101, "UNVERIFIED": 7102} {
			email := e.email()
			from, to := e.person(t, e.away, email), e.person(t, e.home, e.email())
			e.link(t, from, to)
			e.Directories.Change(t, e.ref(t, to), directoryapi.NewAccount{Status: field.Some(status)})
			e.refused(t, 400, code, "POST", e.shop+"/loginAttempts", e.attempt(email, nil))
			wrong := e.attempt(email, nil)
			wrong["value"] = value(email, "Wrong1234")
			e.refused(t, 400, 7100, "POST", e.shop+"/loginAttempts", wrong)
			admit := applicationapi.CompleteLogin{Tenant: e.tenant, Application: idOf(t, e.shop), Account: idOf(t, from)}
			if _, err := e.Service.CompleteLogin(t.Context(), admit); apierr.From(err).Code != code {
				t.Errorf("%s: it was admitted with %v", status, err)
			}
		}
	})
	t.Run("without a default account store nobody is linked", func(t *testing.T) {
		bare := newEntry(t, e.client)
		bare.set(t, bare.policy, true, true, true)
		bare.update(t, linked(t, bare.get(t, bare.shop), "defaultAccountStoreMapping"),
			object{"isDefaultAccountStore": false})
		email := bare.email()
		from := bare.person(t, bare.away, email)
		bare.person(t, bare.home, email)
		if got := bare.login(t, email, nil); got != from {
			t.Errorf("%s logged in, want %s", got, from)
		}
	})
	t.Run("a default store that is a group", func(t *testing.T) {
		g := newEntry(t, e.client)
		g.set(t, g.policy, true, true, true)
		group := g.group(t, g.home, "Staff")
		g.mapping(t, g.shop, group, object{"isDefaultAccountStore": true, "listIndex": 0})
		member, beside, from := g.email(), g.email(), g.email()
		inside := g.person(t, g.home, member)
		g.join(t, idOf(t, inside), group)
		outside := g.person(t, g.home, beside)
		g.person(t, g.away, from)
		for email, want := range map[string]string{member: inside, beside: outside} {
			if got := g.login(t, email, nil); got != want {
				t.Errorf("%s logged in, want %s", got, want)
			}
		}
		made := g.login(t, from, link(g.away))
		of, err := g.Directories.StoresOf(t.Context(), g.ref(t, made))
		if err != nil || len(of.Stores) != 2 || of.Stores[1].ID != idOf(t, group) {
			t.Errorf("the copy is in %v, %v", of.Stores, err)
		}
		if got := g.login(t, from, link(g.away)); got != made {
			t.Errorf("%s logged in, want the copy %s", got, made)
		}
	})
}

func TestTheLinkingPolicyOfAnOrganization(t *testing.T) {
	t.Parallel()
	e := newEntry(t, open(t))
	bank := e.organization(t, "bank")
	policy := linked(t, e.get(t, bank), "accountLinkingPolicy")
	vault, staff := e.directory(t, "Vault"), e.directory(t, "Staff")
	e.organizationMapping(t, bank, staff, nil)
	e.organizationMapping(t, bank, vault, object{"isDefaultAccountStore": true})
	e.mapping(t, e.shop, bank, nil)
	key := object{"nameKey": "bank"}

	// linkedTwice makes an account of the organization that is linked to the
	// default stores of both.
	linkedTwice := func(t *testing.T) (email, itself, ofShop, ofBank string) {
		email = e.email()
		itself, ofShop, ofBank = e.person(t, staff, email), e.person(t, e.home, e.email()), e.person(t, vault, e.email())
		e.link(t, itself, ofShop)
		e.link(t, itself, ofBank)
		return email, itself, ofShop, ofBank
	}
	for _, c := range []struct{ shop, bank bool }{{false, false}, {false, true}, {true, false}, {true, true}} {
		t.Run(fmt.Sprintf("the application's is on: %v, the organization's: %v", c.shop, c.bank), func(t *testing.T) {
			email, itself, ofShop, ofBank := linkedTwice(t)
			e.set(t, e.policy, c.shop, false, false)
			e.set(t, policy, c.bank, false, false)
			want := map[bool]string{false: itself, true: ofBank}[c.bank]
			for _, store := range []object{key, link(bank)} {
				if got := e.login(t, email, store); got != want {
					t.Errorf("%s logged in to the organization, want %s", got, want)
				}
			}
			admit := applicationapi.CompleteLogin{Tenant: e.tenant, Application: idOf(t, e.shop), Account: idOf(t, itself),
				NameKey: "bank"}
			if in, err := e.Service.CompleteLogin(t.Context(), admit); err != nil || in.Account.ID != idOf(t, want) ||
				in.Organization != idOf(t, bank) {
				t.Errorf("%s was admitted to %s, %v", in.Account.ID, in.Organization, err)
			}
			if got, want := e.login(t, email, nil), map[bool]string{false: itself, true: ofShop}[c.shop]; got != want {
				t.Errorf("%s logged in to the application, want %s", got, want)
			}
		})
	}
	t.Run("a default store that is the organization leads on to that of it", func(t *testing.T) {
		email, _, _, ofBank := linkedTwice(t)
		e.set(t, e.policy, true, true, true)
		for _, m := range items(t, e.get(t, e.shop+"/accountStoreMappings"), "href") {
			if linked(t, e.get(t, m), "accountStore") == bank {
				e.update(t, m, object{"isDefaultAccountStore": true})
			}
		}
		if got := e.login(t, email, nil); got != ofBank {
			t.Errorf("%s logged in, want %s", got, ofBank)
		}
		other := e.email()
		from := e.person(t, e.away, other)
		made, err := e.Directories.Account(t.Context(), e.ref(t, e.login(t, other, nil)))
		if err != nil || made.DirectoryID != idOf(t, vault) {
			t.Errorf("the copy is in %s, want %s: %v", made.DirectoryID, vault, err)
		}
		third := e.email()
		e.update(t, bank, object{"status": "DISABLED"})
		e.refused(t, 400, 7107, "POST", e.shop+"/loginAttempts", e.attempt(other, nil))
		last := e.person(t, e.away, third)
		e.person(t, vault, third)
		if got := e.login(t, third, nil); got != last {
			t.Errorf("with the organization disabled %s logged in, want %s", got, last)
		}
		admit := applicationapi.CompleteLogin{Tenant: e.tenant, Application: idOf(t, e.shop), Account: idOf(t, from)}
		if _, err := e.Service.CompleteLogin(t.Context(), admit); !errors.Is(err, apierr.OrganizationDisabled) {
			t.Errorf("the login was admitted with %v", err)
		}
		e.mapping(t, e.shop, vault, nil)
		if got := e.login(t, other, nil); got != applicationtest.Base.To("accounts", made.ID) {
			t.Errorf("with another way to the default store %s logged in", got)
		}
	})
	t.Run("an organization that is the default store and has none has nobody new", func(t *testing.T) {
		e.update(t, bank, object{"status": "ENABLED"})
		e.update(t, linked(t, e.get(t, bank), "defaultAccountStoreMapping"), object{"isDefaultAccountStore": false})
		email := e.email()
		from := e.person(t, e.away, email)
		if got := e.login(t, email, nil); got != from {
			t.Errorf("%s logged in, want %s", got, from)
		}
	})
}

func TestLinksStayInTheirTenant(t *testing.T) {
	t.Parallel()
	victim := newEntry(t, open(t))
	intruder := newEntry(t, victim.another(t))
	email := victim.email()
	victim.person(t, victim.home, email)
	from := intruder.person(t, intruder.away, email)
	intruder.set(t, intruder.policy, true, false, true)
	if got := intruder.login(t, email, nil); got != from {
		t.Errorf("%s logged in, want %s", got, from)
	}
	intruder.set(t, intruder.policy, true, true, true)
	made, err := intruder.Directories.Account(t.Context(), intruder.ref(t, intruder.login(t, email, nil)))
	if err != nil || made.TenantID != intruder.tenant || made.DirectoryID != idOf(t, intruder.home) {
		t.Errorf("the copy is %+v, %v", made, err)
	}
	intruder.refused(t, 404, 404, "POST", victim.policy, object{"status": "ENABLED"})
	intruder.refused(t, 404, 404, "POST", victim.shop+"/loginAttempts?explain=true", intruder.attempt(email, nil))
	intruder.refused(t, 400, 2014, "POST", intruder.shop+"/loginAttempts?explain=true",
		intruder.attempt(email, link(victim.home)))
}
