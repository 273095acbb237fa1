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

// togglePolicy enables, or sometimes disables, the account linking policy of an owner.
func (w *model) togglePolicy() {
	o := w.owners[pick(w, w.owners)]
	o.linking = w.dice.IntN(4) > 0
	status := map[bool]string{true: directoryapi.Enabled, false: directoryapi.Disabled}[o.linking]
	if _, err := w.Service.UpdateLinkingPolicy(w.Context(), id.Ref{Tenant: w.tenant, ID: o.policy},
		application.LinkingPolicyChange{Status: field.Some(status)}); err != nil {
		w.Fatal(err)
	}
}

// linkAccounts links two accounts, unless one of them is linked to the other's directory.
func (w *model) linkAccounts() {
	one, other := w.pickDirectory(), w.pickDirectory()
	from, to := w.pickAccount(one), w.pickAccount(other)
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

// pickDirectory returns a random directory.
func (w *model) pickDirectory() id.ID {
	directories := map[id.ID]bool{}
	for of, kind := range w.kinds {
		if kind == directoryapi.Directories {
			directories[of] = true
		}
	}
	return pick(w, directories)
}

// pickAccount returns a random account of a directory.
func (w *model) pickAccount(directory id.ID) id.ID {
	accounts := map[id.ID]bool{}
	for _, account := range w.accounts[directory] {
		accounts[account] = true
	}
	return pick(w, accounts)
}

// directoryOf returns the directory of a group, or the store itself.
func (w *model) directoryOf(of id.ID) id.ID {
	if w.kinds[of] == directoryapi.Groups {
		return w.parent[of]
	}
	return of
}

// hasAccount reports whether a store has an account.
func (w *model) hasAccount(of, account id.ID) bool {
	for _, other := range w.accounts[of] {
		if other == account {
			return true
		}
	}
	return false
}

// loginView has the stores that a login to an application, or to one of its organizations, uses.
type loginView struct {
	all, enabled []id.ID // stores, in order; enabled: not those of disabled organizations
	linking      bool
	defaultStore id.ID // default account store
}

// viewOf returns the stores of a login that names an organization, or no store.
func (w *model) viewOf(o *modelOwner, organization id.ID) (at loginView) {
	if named := w.owners[organization]; named != nil {
		return loginView{all: named.stores, enabled: named.stores, linking: named.linking, defaultStore: named.accountStore}
	}
	for _, of := range o.stores {
		if w.kinds[of] != string(store.OrganizationKind) {
			at.all, at.enabled = append(at.all, of), append(at.enabled, of)
			continue
		}
		at.all = append(at.all, w.owners[of].stores...)
		if !w.disabled[of] {
			at.enabled = append(at.enabled, w.owners[of].stores...)
		}
	}
	at.linking, at.defaultStore = o.linking, o.accountStore
	if within := w.owners[at.defaultStore]; within != nil {
		at.defaultStore = within.accountStore
	}
	return at
}

// login returns the account that logs in by the model, or the error.
func (w *model) login(application, organization id.ID, login string) (id.ID, error) {
	o := w.owners[application]
	at := w.viewOf(o, organization)
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
			return w.followLinks(at, of, account)
		}
	}
	return id.ID{}, apierr.NoSuchAccount
}

// followLinks returns the account that logs in for an account of the store of, or the error.
func (w *model) followLinks(at loginView, of, account id.ID) (id.ID, error) {
	if err := w.accountError(at, of, account); err != nil {
		return id.ID{}, err
	}
	if !at.linking || at.defaultStore.IsZero() || w.hasAccount(at.defaultStore, account) {
		return account, nil
	}
	to, ok := w.links[account][w.directoryOf(at.defaultStore)]
	if !ok || !w.hasAccount(at.defaultStore, to) {
		return account, nil
	}
	if !slices.Contains(at.enabled, at.defaultStore) {
		if err := w.storeError(at.defaultStore); err != nil {
			return id.ID{}, err
		}
		return id.ID{}, apierr.OrganizationDisabled
	}
	return to, w.storeError(at.defaultStore)
}

// storeError returns the error of the accounts of a disabled store.
func (w *model) storeError(of id.ID) error {
	switch {
	case w.disabled[w.directoryOf(of)]:
		return apierr.DirectoryDisabled
	case w.disabled[of]:
		return apierr.GroupDisabled
	}
	return nil
}

// accountError returns the error of an account in the store in which it was found.
func (w *model) accountError(at loginView, of, account id.ID) error {
	if err := w.storeError(of); err != nil {
		return err
	}
	if !slices.ContainsFunc(at.enabled, func(of id.ID) bool { return w.hasAccount(of, account) }) {
		return apierr.OrganizationDisabled
	}
	return nil
}

// accessError returns the error of the tokens of an account by the model.
func (w *model) accessError(application, account id.ID) error {
	at := w.viewOf(w.owners[application], id.ID{})
	is := func(stores []id.ID, usable bool) bool {
		return slices.ContainsFunc(stores,
			func(of id.ID) bool { return w.hasAccount(of, account) && (!usable || w.storeError(of) == nil) })
	}
	switch {
	case w.disabled[application]:
		return apierr.TokenApplicationDisabled
	case !is(at.all, false):
		return apierr.TokenAccountUnreachable
	case !is(at.enabled, true):
		return apierr.TokenStoreDisabled
	}
	return nil
}

// compareLogins compares, with the model, the accounts that log in, the explanations of the logins,
// the accounts whose tokens are valid, and the accounts that are listed.
func (w *model) compareLogins(at id.Ref, o *modelOwner) {
	w.Helper()
	listed, logins := map[id.ID]bool{}, map[string]bool{}
	for _, of := range w.viewOf(o, id.ID{}).all {
		for _, account := range w.accounts[of] {
			listed[account] = true
		}
	}
	page, err := w.Service.AccountLister(store.ApplicationKind)(w.Context(), at, list.First())
	if err != nil || page.Size != len(listed) {
		w.Fatalf("%d accounts are listed, want %d: %v", page.Size, len(listed), err)
	}
	asked := map[id.ID]bool{} // the account of a group is in its directory too
	for _, of := range w.accounts {
		for login, account := range of {
			logins[login] = true
			if asked[account] {
				continue
			}
			asked[account] = true
			if _, err := w.Service.CheckAccess(w.Context(),
				applicationapi.CheckAccess{Tenant: w.tenant, Application: at.ID, Account: account}); !errors.Is(err,
				w.accessError(at.ID, account)) {
				w.Fatalf("%s has access with %v, want %v", login, err, w.accessError(at.ID, account))
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

func (w *model) compareLogin(at id.Ref, organization id.ID, login string) {
	w.Helper()
	w.Clock.Move(applicationtest.Config.Throttle.Address.Within) // resets the limits of failed logins
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

// outcome returns the account that logs in after the right password by an explanation.
func outcome(e application.Explanation) (who id.ID, err error) {
	for _, refusal := range []*apierr.Error{e.Refusal, e.AfterPassword, e.Linking.Refusal} {
		if refusal != nil {
			return id.ID{}, refusal
		}
	}
	return e.Linking.Account.ID, nil
}

// basic returns the value of a login attempt without a password.
func basic(login string) secure.Secret {
	return secure.Secret(base64.StdEncoding.EncodeToString([]byte(login + ":")))
}
