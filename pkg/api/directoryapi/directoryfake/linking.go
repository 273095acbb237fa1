package directoryfake

import (
	"context"
	"slices"
	"testing"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
)

// link joins two accounts.
type link struct {
	ends        [2]id.ID
	provisioned bool // created by a login together with the copy, which is its second end
}

// maxLinks is how many links an account can have.
const maxLinks = 10

// LinkedAccount returns the account that logs in.
func (d *Service) LinkedAccount(_ context.Context, in directoryapi.LinkedAccountRequest) (directoryapi.LinkedAccount, error) {
	return call(d, "LinkedAccount", func() (directoryapi.LinkedAccount, error) {
		from := d.findAccount(in.Tenant, in.Account)
		if from == nil {
			return directoryapi.LinkedAccount{}, apierr.NoSuchAccount
		}
		itself := directoryapi.LinkedAccount{Account: from.Account, Outcome: directoryapi.Unchanged, Reason: "nothing leads elsewhere"}
		home, ok := d.directoryOfStore(in.Tenant, in.Store)
		if !ok || storeContains(in.Store, from) || home.ID == from.DirectoryID {
			return itself, nil
		}
		if to := d.linkedIn(from, home.ID); to != nil {
			if !storeContains(in.Store, to) {
				return itself, nil
			}
			return d.allowLogin(to, in.Store, directoryapi.Followed)
		}
		if home.Status != directoryapi.Enabled || !d.isEnabled(in.Store) || len(d.linksOf(from)) >= maxLinks {
			return itself, nil
		}
		known := d.accountsWithName(from, home.ID)
		isLinkable := func(to *account) bool { return in.ByEmail && storeContains(in.Store, to) && isMatch(from, to) }
		if i := slices.IndexFunc(known, isLinkable); i >= 0 {
			return d.linkByEmail(in, from, known[i], itself)
		}
		if len(known) > 0 || !in.Provision || home.Mirror() {
			return itself, nil
		}
		return d.provision(in, from, home.ID), nil
	})
}

// directoryOfStore returns the directory of a store: itself, or that of the group.
func (d *Service) directoryOfStore(tenant id.ID, store directoryapi.Store) (directoryapi.Directory, bool) {
	at := directoryapi.Ref{Tenant: tenant, ID: store.ID}
	if store.Kind == directoryapi.Groups {
		g, err := d.group(at)
		if err != nil {
			return directoryapi.Directory{}, false
		}
		at.ID = g.DirectoryID
	}
	directory, ok := d.directories[at]
	return directory, ok
}

// linkedIn returns the account of a directory to which another account is linked, or nil.
func (d *Service) linkedIn(from *account, directory id.ID) *account {
	for _, other := range d.linksOf(from) {
		if to := d.findAccount(from.TenantID, other); to != nil && to.DirectoryID == directory {
			return to
		}
	}
	return nil
}

// linksOf returns the ids of the accounts to which an account is linked.
func (d *Service) linksOf(of *account) (others []id.ID) {
	for _, l := range d.links {
		switch of.ID {
		case l.ends[0]:
			others = append(others, l.ends[1])
		case l.ends[1]:
			others = append(others, l.ends[0])
		}
	}
	return others
}

// accountsWithName returns the accounts of a directory that have the user name or the email of
// another account.
func (d *Service) accountsWithName(from *account, directory id.ID) (known []*account) {
	names := []string{field.LoginName(from.Email), field.LoginName(from.Username)}
	for _, a := range d.accounts {
		if a.TenantID == from.TenantID && a.DirectoryID == directory &&
			(slices.Contains(names, field.LoginName(a.Email)) || slices.Contains(names, field.LoginName(a.Username))) {
			known = append(known, a)
		}
	}
	return known
}

func isMatch(from, to *account) bool {
	return field.SameMailbox(from.Email, to.Email) && hasVerifiedEmail(from) && hasVerifiedEmail(to)
}

func hasVerifiedEmail(a *account) bool {
	return a.EmailVerificationStatus == directoryapi.Verified && !a.EmailAssumed
}

// allowLogin returns the login of an account, unless the account may not log in.
func (d *Service) allowLogin(to *account, store directoryapi.Store, outcome directoryapi.LinkOutcome) (directoryapi.LinkedAccount, error) {
	err := d.checkLoginAllowed(to, store)
	return directoryapi.LinkedAccount{Account: to.Account, Outcome: outcome, Reason: "a link leads to it"}, err
}

// linkByEmail links an account to the account of the same email.
func (d *Service) linkByEmail(
	in directoryapi.LinkedAccountRequest, from, to *account, itself directoryapi.LinkedAccount,
) (directoryapi.LinkedAccount, error) {
	out, err := d.allowLogin(to, in.Store, directoryapi.Linked)
	if err == nil && (len(d.linksOf(to)) >= maxLinks || d.linkedIn(to, from.DirectoryID) != nil) {
		return itself, nil
	}
	if err == nil && !in.DryRun {
		d.links = append(d.links, link{ends: [2]id.ID{from.ID, to.ID}})
	}
	return out, err
}

// provision creates a copy of an account and links it.
func (d *Service) provision(in directoryapi.LinkedAccountRequest, from *account, directory id.ID) directoryapi.LinkedAccount {
	a := &account{Account: from.Account}
	a.ID, a.DirectoryID, a.Status, a.PasswordModifiedAt, a.Owner = id.ID{}, directory, directoryapi.Enabled, nil, false
	a.VerificationToken, a.CreatedAt, a.ModifiedAt = "", d.now(), d.now()
	if !in.DryRun {
		a.ID = id.New(d.now())
		if in.Store.Kind == directoryapi.Groups {
			a.groups = []id.ID{in.Store.ID}
		}
		d.accounts = append(d.accounts, a)
		d.links = append(d.links, link{ends: [2]id.ID{from.ID, a.ID}, provisioned: true})
	}
	return directoryapi.LinkedAccount{Account: a.Account, Outcome: directoryapi.Provisioned, Reason: "a copy is made"}
}

// ExplainLogin finds the account of a login.
func (d *Service) ExplainLogin(_ context.Context, in directoryapi.ExplainLogin) (directoryapi.ExplainedLogin, error) {
	return call(d, "ExplainLogin", func() (out directoryapi.ExplainedLogin, err error) {
		for i, store := range in.Stores {
			if named, ok := d.namedStore(in.Tenant, store); ok && !slices.Contains(in.Stores[:i], store) {
				out.Stores = append(out.Stores, named)
			}
		}
		a, store := d.findPasswordLogin(in.Tenant, in.Stores, in.Login)
		if a == nil {
			out.Refusal = apierr.NoSuchAccount
			return out, nil
		}
		out.Found = &directoryapi.Authenticated{Account: a.Account, Store: store}
		if a.password == "" {
			out.Refusal = apierr.WrongPassword
		} else if err := d.checkLoginAllowed(a, store); err != nil {
			out.Refusal = apierr.From(err)
		}
		return out, nil
	})
}

func (d *Service) namedStore(tenant id.ID, store directoryapi.Store) (directoryapi.NamedStore, bool) {
	home, ok := d.directoryOfStore(tenant, store)
	named := directoryapi.NamedStore{
		Store: store, Name: home.Name, Status: home.Status, DirectoryID: home.ID, ProviderID: home.ProviderID, Directory: home.Name,
	}
	if g, err := d.group(directoryapi.Ref{Tenant: tenant, ID: store.ID}); err == nil {
		named.Name, named.Status = g.Name, g.Status
	}
	return named, ok
}

// Link links two accounts.
func (d *Service) Link(t *testing.T, one, other directoryapi.Ref) {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.findAccount(one.Tenant, one.ID) == nil || d.findAccount(other.Tenant, other.ID) == nil {
		t.Fatalf("there is no account %s or no account %s to link", one.ID, other.ID)
	}
	d.links = append(d.links, link{ends: [2]id.ID{one.ID, other.ID}})
}

// Change changes an account.
func (d *Service) Change(t testing.TB, at directoryapi.Ref, change func(*directoryapi.Account)) {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	a := d.findAccount(at.Tenant, at.ID)
	if a == nil {
		t.Fatalf("there is no account %s to change", at.ID)
	}
	change(&a.Account)
	d.Changes.Append(at)
}

// MarkVerified marks the email of an account as verified.
func (d *Service) MarkVerified(t *testing.T, at directoryapi.Ref) {
	t.Helper()
	d.Change(t, at, func(a *directoryapi.Account) { a.EmailVerificationStatus = directoryapi.Verified })
}

// DeleteAccount deletes an account.
func (d *Service) DeleteAccount(t testing.TB, at directoryapi.Ref) {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.accounts = slices.DeleteFunc(d.accounts, func(a *account) bool { return a.TenantID == at.Tenant && a.ID == at.ID })
	d.Changes.Append(at)
	d.links = slices.DeleteFunc(d.links, func(l link) bool { return slices.Contains(l.ends[:], at.ID) })
}
