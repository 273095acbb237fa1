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
	provisioned bool // a login made it, with the copy that is its second end
}

// maxLinks is how many links an account can have.
const maxLinks = 10

// LinkedAccount returns the account that logs in.
func (d *Service) LinkedAccount(_ context.Context, in directoryapi.LinkAccount) (directoryapi.LinkedAccount, error) {
	return call(d, "LinkedAccount", func() (directoryapi.LinkedAccount, error) {
		from := d.find(in.Tenant, in.Account)
		if from == nil {
			return directoryapi.LinkedAccount{}, apierr.NoSuchAccount
		}
		itself := directoryapi.LinkedAccount{Account: from.Account, Outcome: directoryapi.Unlinked, Reason: "nothing leads elsewhere"}
		home, ok := d.home(in.Tenant, in.Store)
		if !ok || holdsIn(in.Store, from) || home.ID == from.DirectoryID {
			return itself, nil
		}
		if to := d.linkedIn(from, home.ID); to != nil {
			if !holdsIn(in.Store, to) {
				return itself, nil
			}
			return d.leads(to, in.Store, directoryapi.Followed)
		}
		if home.Status != directoryapi.Enabled || !d.isOpen(in.Store) || len(d.linksOf(from)) >= maxLinks {
			return itself, nil
		}
		known := d.knownAs(from, home.ID)
		if i := slices.IndexFunc(known, func(to *account) bool { return in.ByEmail && holdsIn(in.Store, to) && isMatch(from, to) }); i >= 0 {
			return d.match(in, from, known[i], itself)
		}
		if len(known) > 0 || !in.Provision || home.Mirror() {
			return itself, nil
		}
		return d.provision(in, from, home.ID), nil
	})
}

// home returns the directory that a store is or is in.
func (d *Service) home(tenant id.ID, store directoryapi.Store) (directoryapi.Directory, bool) {
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

// linkedIn returns the account of a directory that another is linked to, or nil.
func (d *Service) linkedIn(from *account, directory id.ID) *account {
	for _, other := range d.linksOf(from) {
		if to := d.find(from.TenantID, other); to != nil && to.DirectoryID == directory {
			return to
		}
	}
	return nil
}

// linksOf returns the other ends of the links of an account.
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

// knownAs returns the accounts of a directory that bear the user name or the email
// of another.
func (d *Service) knownAs(from *account, directory id.ID) (known []*account) {
	names := []string{field.Fold(from.Email), field.Fold(from.Username)}
	for _, a := range d.accounts {
		if a.TenantID == from.TenantID && a.DirectoryID == directory &&
			(slices.Contains(names, field.Fold(a.Email)) || slices.Contains(names, field.Fold(a.Username))) {
			known = append(known, a)
		}
	}
	return known
}

func isMatch(from, to *account) bool {
	return field.SameMailbox(from.Email, to.Email) && hasProvedEmail(from) && hasProvedEmail(to)
}

func hasProvedEmail(a *account) bool {
	return a.EmailVerificationStatus == directoryapi.Verified && !a.EmailAssumed
}

// leads lets an account log in unless it may not.
func (d *Service) leads(to *account, store directoryapi.Store, outcome directoryapi.LinkOutcome) (directoryapi.LinkedAccount, error) {
	err := d.admits(to, store)
	return directoryapi.LinkedAccount{Account: to.Account, Outcome: outcome, Reason: "a link leads to it"}, err
}

// match links an account to that of the same email.
func (d *Service) match(
	in directoryapi.LinkAccount, from, to *account, itself directoryapi.LinkedAccount,
) (directoryapi.LinkedAccount, error) {
	out, err := d.leads(to, in.Store, directoryapi.Matched)
	if err == nil && (len(d.linksOf(to)) >= maxLinks || d.linkedIn(to, from.DirectoryID) != nil) {
		return itself, nil
	}
	if err == nil && !in.DryRun {
		d.links = append(d.links, link{ends: [2]id.ID{from.ID, to.ID}})
	}
	return out, err
}

// provision makes a copy of an account and links it.
func (d *Service) provision(in directoryapi.LinkAccount, from *account, directory id.ID) directoryapi.LinkedAccount {
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
			if named, ok := d.named(in.Tenant, store); ok && !slices.Contains(in.Stores[:i], store) {
				out.Stores = append(out.Stores, named)
			}
		}
		a, store := d.candidate(in.Tenant, in.Stores, in.Login)
		if a == nil {
			out.Refusal = apierr.NoSuchAccount
			return out, nil
		}
		out.Found = &directoryapi.Authenticated{Account: a.Account, Store: store}
		if a.password == "" {
			out.Refusal = apierr.WrongPassword
		} else if err := d.admits(a, store); err != nil {
			out.Refusal = apierr.From(err)
		}
		return out, nil
	})
}

func (d *Service) named(tenant id.ID, store directoryapi.Store) (directoryapi.NamedStore, bool) {
	home, ok := d.home(tenant, store)
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
	if d.find(one.Tenant, one.ID) == nil || d.find(other.Tenant, other.ID) == nil {
		t.Fatalf("there is no account %s or no account %s to link", one.ID, other.ID)
	}
	d.links = append(d.links, link{ends: [2]id.ID{one.ID, other.ID}})
}

// Change changes an account.
func (d *Service) Change(t testing.TB, at directoryapi.Ref, change func(*directoryapi.Account)) {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	a := d.find(at.Tenant, at.ID)
	if a == nil {
		t.Fatalf("there is no account %s to change", at.ID)
	}
	change(&a.Account)
	d.Changes.Append(at)
}

// MarkVerified lets the email of an account count as proved.
func (d *Service) MarkVerified(t *testing.T, at directoryapi.Ref) {
	t.Helper()
	d.Change(t, at, func(a *directoryapi.Account) { a.EmailVerificationStatus = directoryapi.Verified })
}

// DeleteAccount removes an account.
func (d *Service) DeleteAccount(t testing.TB, at directoryapi.Ref) {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.accounts = slices.DeleteFunc(d.accounts, func(a *account) bool { return a.TenantID == at.Tenant && a.ID == at.ID })
	d.Changes.Append(at)
	d.links = slices.DeleteFunc(d.links, func(l link) bool { return slices.Contains(l.ends[:], at.ID) })
}
