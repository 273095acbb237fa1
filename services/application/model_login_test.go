package application_test

import (
	"encoding/base64"
	"errors"
	"slices"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/list"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/application"
	"github.com/doorward/doorward/services/application/applicationtest"
	"github.com/doorward/doorward/services/application/store"
)

// policy turns the linking policy of an owner on, or sometimes off.
func (w *world) policy() {
	o := w.owners[pick(w, w.owners)]
	o.linking = w.dice.IntN(4) > 0
	status := map[bool]string{true: directoryapi.Enabled, false: directoryapi.Disabled}[o.linking]
	if _, err := w.Service.UpdateLinkingPolicy(w.Context(), id.Ref{Tenant: w.tenant, ID: o.policy}, application.LinkingPolicyChange{Status: field.Some(status)}); err != nil {
		w.Fatal(err)
	}
}

// link links two accounts, unless they exclude each other.
func (w *world) link() {
	one, other := w.directory(), w.directory()
	from, to := w.someone(one), w.someone(other)
	if _, taken := w.links[from][other]; one == other || taken {
		return
	}
	if _, taken := w.links[to][one]; taken {
		return
	}
	for _, l := range []struct{ from, at, to id.ID }{{from, other, to}, {to, one, from}} {
		if w.links[l.from] == nil {
			w.links[l.from] = map[id.ID]id.ID{}
		}
		w.links[l.from][l.at] = l.to
	}
	w.Directories.Link(w.T, id.Ref{Tenant: w.tenant, ID: from}, id.Ref{Tenant: w.tenant, ID: to})
}

// directory picks a directory.
func (w *world) directory() id.ID {
	directories := map[id.ID]bool{}
	for of, kind := range w.kinds {
		if kind == directoryapi.Directories {
			directories[of] = true
		}
	}
	return pick(w, directories)
}

// someone picks an account of a directory.
func (w *world) someone(directory id.ID) id.ID {
	accounts := map[id.ID]bool{}
	for _, account := range w.accounts[directory] {
		accounts[account] = true
	}
	return pick(w, accounts)
}

// home is the directory that a store is or is in.
func (w *world) home(of id.ID) id.ID {
	if w.kinds[of] == directoryapi.Groups {
		return w.parent[of]
	}
	return of
}

// holds reports whether a store has an account.
func (w *world) holds(of, account id.ID) bool {
	for _, other := range w.accounts[of] {
		if other == account {
			return true
		}
	}
	return false
}

// way is what a login through an application, or one of its organizations, sees.
type way struct {
	all, open []id.ID // stores, one after the other
	linking   bool
	home      id.ID // default account store
}

// through returns the way of a login that names no store, or names an organization
// of the application.
func (w *world) through(o *modelOwner, organization id.ID) (at way) {
	if named := w.owners[organization]; named != nil {
		return way{all: named.stores, open: named.stores, linking: named.linking, home: named.accountStore}
	}
	for _, of := range o.stores {
		if w.kinds[of] != string(store.OrganizationKind) {
			at.all, at.open = append(at.all, of), append(at.open, of)
			continue
		}
		at.all = append(at.all, w.owners[of].stores...)
		if !w.disabled[of] {
			at.open = append(at.open, w.owners[of].stores...)
		}
	}
	at.linking, at.home = o.linking, o.accountStore
	if within := w.owners[at.home]; within != nil {
		at.home = within.accountStore
	}
	return at
}

// login returns the account that the model logs in.
func (w *world) login(application, organization id.ID, login string) (id.ID, error) {
	o := w.owners[application]
	at := w.through(o, organization)
	switch {
	case w.disabled[application]:
		return id.ID{}, apierr.NoSuchAccount
	case !organization.IsZero() && w.disabled[organization]:
		return id.ID{}, apierr.OrganizationDisabled
	case !organization.IsZero() && len(at.all) == 0:
		return id.ID{}, apierr.OrgNoStores
	case len(o.stores) == 0:
		return id.ID{}, apierr.NoStores
	}
	for _, of := range at.all {
		if account, ok := w.accounts[of][login]; ok {
			return w.admit(at, of, account)
		}
	}
	return id.ID{}, apierr.NoSuchAccount
}

// admit follows the links of an account whose store decides.
func (w *world) admit(at way, of, account id.ID) (id.ID, error) {
	if err := w.refused(at, of, account); err != nil {
		return id.ID{}, err
	}
	if !at.linking || at.home.IsZero() || w.holds(at.home, account) {
		return account, nil
	}
	to, ok := w.links[account][w.home(at.home)]
	if !ok || !w.holds(at.home, to) {
		return account, nil
	}
	if !slices.Contains(at.open, at.home) {
		if err := w.closed(at.home); err != nil {
			return id.ID{}, err
		}
		return id.ID{}, apierr.OrganizationDisabled
	}
	return to, w.closed(at.home)
}

// closed is what the state of a store refuses its accounts with.
func (w *world) closed(of id.ID) error {
	switch {
	case w.disabled[w.home(of)]:
		return apierr.DirectoryDisabled
	case w.disabled[of]:
		return apierr.GroupDisabled
	}
	return nil
}

// refused is what an account is refused with in the store that decides.
func (w *world) refused(at way, of, account id.ID) error {
	if err := w.closed(of); err != nil {
		return err
	}
	if !slices.ContainsFunc(at.open, func(of id.ID) bool { return w.holds(of, account) }) {
		return apierr.OrganizationDisabled
	}
	return nil
}

// access is what the model says of an account's tokens.
func (w *world) access(application, account id.ID) error {
	at := w.through(w.owners[application], id.ID{})
	is := func(stores []id.ID, usable bool) bool {
		return slices.ContainsFunc(stores, func(of id.ID) bool { return w.holds(of, account) && (!usable || w.closed(of) == nil) })
	}
	switch {
	case w.disabled[application]:
		return apierr.TokenApplicationDisabled
	case !is(at.all, false):
		return apierr.TokenAccountUnreachable
	case !is(at.open, true):
		return apierr.TokenStoreDisabled
	}
	return nil
}

// compareLogins compares the accounts that log in, the explanations of it, the
// accounts whose tokens are valid, and those that are listed.
func (w *world) compareLogins(at id.Ref, o *modelOwner) {
	w.Helper()
	listed, logins := map[id.ID]bool{}, map[string]bool{}
	for _, of := range w.through(o, id.ID{}).all {
		for _, account := range w.accounts[of] {
			listed[account] = true
		}
	}
	page, err := w.Service.AccountLister(store.ApplicationKind)(w.Context(), at, list.First())
	if err != nil || page.Size != len(listed) {
		w.Fatalf("%d accounts are listed, want %d: %v", page.Size, len(listed), err)
	}
	for _, of := range w.accounts {
		for login, account := range of {
			logins[login] = true
			if _, err := w.Service.CheckAccess(w.Context(), applicationapi.CheckAccess{Tenant: w.tenant, Application: at.ID, Account: account}); !errors.Is(err, w.access(at.ID, account)) {
				w.Fatalf("%s has access with %v, want %v", login, err, w.access(at.ID, account))
			}
		}
	}
	organizations := []id.ID{{}}
	for _, of := range o.stores {
		if w.kinds[of] == string(store.OrganizationKind) {
			organizations = append(organizations, of)
		}
	}
	for login := range logins {
		for _, organization := range organizations {
			w.compareLogin(at, organization, login)
		}
	}
}

func (w *world) compareLogin(at id.Ref, organization id.ID, login string) {
	w.Helper()
	w.Clock.Move(applicationtest.Config.Address.Within) // what failed before does not count
	want, wantErr := w.login(at.ID, organization, login)
	in := applicationapi.Login{Tenant: w.tenant, Application: at.ID, Login: login, Password: applicationtest.Password}
	body := application.LoginAttempt{Type: field.Some("basic"), Value: field.Some(basic(login))}
	if !organization.IsZero() {
		in.AccountStore = applicationtest.Base.Link("organizations", organization)
		body.AccountStore = field.Some(directoryapi.StoreName{Href: in.AccountStore.Href})
	}
	got, err := w.Service.Login(w.Context(), in)
	if !errors.Is(err, wantErr) || wantErr == nil && got.Account.ID != want {
		w.Fatalf("%s logs in as %v, %v, want %v, %v", login, got.Account.ID, err, want, wantErr)
	}
	e, err := w.Service.ExplainLogin(w.Context(), at, body)
	if err != nil {
		w.Fatal(err)
	}
	if who, said := outcome(e); !errors.Is(said, wantErr) || wantErr == nil && who != want {
		w.Fatalf("it is explained that %s logs in as %v, %v, want %v, %v", login, who, said, want, wantErr)
	}
}

// outcome is the account that logs in after the right password, as an explanation has it.
func outcome(e application.Explanation) (who id.ID, err error) {
	for _, refusal := range []*apierr.Error{e.Refusal, e.AfterPassword, e.Linking.Refusal} {
		if refusal != nil {
			return id.ID{}, refusal
		}
	}
	return e.Linking.Account.ID, nil
}

// basic is the value of an attempt that has no password.
func basic(login string) secure.Secret {
	return secure.Secret(base64.StdEncoding.EncodeToString([]byte(login + ":")))
}
