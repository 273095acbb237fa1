package directory

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/services/directory/store"
)

// maxLinkAttempts bounds how many times a login starts again because others changed at the
// same time what it had read.
const maxLinkAttempts = 4

// errConcurrentChange says that what was decided before the locks does not hold any
// more.
var errConcurrentChange = errors.New("directory: another login made the link")

// linkPlan is the account that logs in for one that has proved itself, and what has to
// be made for that.
type linkPlan struct {
	candidate store.LinkCandidate
	account   directoryapi.Account // that logs in; a copy that is to be made has no id yet
	outcome   directoryapi.LinkOutcome
	reason    string
}

// makes reports whether there is a link to be made.
func (p linkPlan) makes() bool {
	return p.outcome == directoryapi.Linked || p.outcome == directoryapi.Provisioned
}

// unlinked lets the account that has proved itself log in as itself.
func (p linkPlan) unlinked(reason string) linkPlan {
	p.account, p.outcome, p.reason = p.candidate.Account, directoryapi.Unchanged, reason
	return p
}

// leadsTo lets another account log in.
func (p linkPlan) leadsTo(account directoryapi.Account, outcome directoryapi.LinkOutcome, reason string) linkPlan {
	p.account, p.outcome, p.reason = account, outcome, reason
	return p
}

// LinkedAccount returns the account that logs in (docs/interface/account-linking.md#outcome-at-login).
func (s *Service) LinkedAccount(ctx context.Context, in directoryapi.LinkAccount) (directoryapi.LinkedAccount, error) {
	p, err := s.linked(ctx, in)
	if errors.Is(err, apierr.NotFound) {
		err = apierr.NoSuchAccount.Because("the account is not there any more")
	}
	if err != nil {
		return directoryapi.LinkedAccount{}, err
	}
	account, err := s.unsealed(p.account)
	return directoryapi.LinkedAccount{Account: account, Outcome: p.outcome, Reason: p.reason}, err
}

// linked decides without a lock, as most logins follow a link that is there, and
// what is to be made once more under the locks. When others are faster, it
// starts again and finds what they have made.
func (s *Service) linked(ctx context.Context, in directoryapi.LinkAccount) (linkPlan, error) {
	for attempt := 1; ; attempt++ {
		candidate, err := s.store.LinkCandidate(ctx, in.Tenant, in.Account, in.Store)
		if err != nil {
			return linkPlan{}, err
		}
		p, err := planLink(in, candidate)
		if err == nil && p.outcome == directoryapi.Provisioned {
			p, err = s.admitCopy(ctx, p)
		}
		switch {
		case err != nil || !p.makes():
			return p, err
		case in.DryRun:
			reaches, err := s.store.Reaches(ctx, in.Tenant, in.Account, p.account.ID)
			return s.withoutExcluded(p, reaches), err
		}
		made, err := s.link(ctx, in, p)
		changed := errors.Is(err, errConcurrentChange) || errors.Is(err, apierr.Exists) || errors.Is(err, apierr.NotFound)
		switch {
		case !changed:
			return made, err
		case attempt == maxLinkAttempts:
			return p.unlinked("others changed the accounts at the same time; the next login tries again"), nil
		}
	}
}

// planLink decides which account logs in. It refuses with that account's own refusal where
// it may not (7101, 7102, 7105, 7106).
func planLink(in directoryapi.LinkAccount, a store.LinkCandidate) (linkPlan, error) {
	p := decideLink(in, a)
	if p.outcome == directoryapi.Unchanged || p.outcome == directoryapi.Provisioned {
		return p, nil
	}
	err := checkAdmission(store.Candidate{Account: p.account, DirectoryStatus: a.TargetStatus, StoreStatus: a.StoreStatus})
	if err != nil {
		refusal := apierr.From(err)
		err = refusal.Because("the login leads to the account %s of the default account store: %s", p.account.ID, refusal.Reason)
	}
	return p, err
}

// withoutExcluded drops from a plan the link that the links of its accounts
// exclude (7503, 7505).
func (s *Service) withoutExcluded(p linkPlan, reaches []store.Reach) linkPlan {
	from, to := p.candidate.Account, p.account
	l := store.AccountLink{TenantID: from.TenantID, LeftAccountID: from.ID, RightAccountID: to.ID}
	if err := s.checkLink(l, map[id.ID]id.ID{from.ID: from.DirectoryID, to.ID: to.DirectoryID}, reaches); err != nil {
		return p.unlinked("no link can be made: " + apierr.From(err).Reason)
	}
	return p
}

// decideLink is the account linking of a login across directories, the table of
// docs/interface/account-linking.md#outcome-at-login. In a disabled store nothing new is
// made: only a link that is there leads to it.
func decideLink(in directoryapi.LinkAccount, a store.LinkCandidate) linkPlan {
	p := linkPlan{candidate: a}
	switch {
	case a.TargetID.IsZero():
		return p.unlinked("the default account store was deleted")
	case a.Inside:
		return p.unlinked("the account is in the default account store")
	case a.TargetID == a.DirectoryID:
		return p.unlinked("the account is in the directory of the default account store, beside its group; " +
			"accounts of one directory are not linked")
	}
	if i := slices.IndexFunc(a.Counterparts, func(c store.Counterpart) bool { return c.Linked }); i >= 0 {
		if c := a.Counterparts[i]; c.Inside {
			return p.leadsTo(c.Account, directoryapi.Followed, "the account is linked to one of the default account store")
		}
		return p.unlinked("the account is linked to one of the same directory as the default account store, outside of its group")
	}
	switch {
	case a.TargetStatus != directoryapi.Enabled || a.StoreStatus != directoryapi.Enabled:
		return p.unlinked("the default account store is disabled")
	case in.ByEmail:
		// An account that has not proved its email may have taken the address of another.
		if i := slices.IndexFunc(a.Counterparts, func(c store.Counterpart) bool {
			return c.Inside && a.SameEmail(c) && hasProvedEmail(a.Account) && hasProvedEmail(c.Account)
		}); i >= 0 {
			return p.leadsTo(a.Counterparts[i].Account, directoryapi.Linked,
				"the default account store has an account of the same email, and both are verified")
		}
	}
	switch {
	case len(a.Counterparts) > 0:
		return p.unlinked("the directory of the default account store has an account of that email or user name, " +
			"which the account is not linked to (a match needs that both have verified their email)")
	case !in.Provision:
		return p.unlinked("the account is linked to none of the default account store, and none is to be made")
	case a.TargetProvider != directoryapi.Native:
		return p.unlinked("the default account store mirrors another, where its accounts are made")
	}
	return p.leadsTo(copyOf(a), directoryapi.Provisioned, "a copy of the account is made in the default account store")
}

// hasProvedEmail reports whether a mail, an administrator or the provider has verified
// the email of an account.
func hasProvedEmail(a directoryapi.Account) bool {
	return a.EmailVerificationStatus == directoryapi.Verified && !a.EmailAssumed
}

// copyOf is what a default account store gets of an account: no password, no
// groups, no custom data.
func copyOf(a store.LinkCandidate) directoryapi.Account {
	return directoryapi.Account{
		TenantID: a.TenantID, DirectoryID: a.TargetID, Username: a.Username, Email: a.Email,
		GivenName: a.GivenName, MiddleName: a.MiddleName, Surname: a.Surname,
		Status: directoryapi.Enabled, EmailVerificationStatus: a.EmailVerificationStatus, EmailAssumed: a.EmailAssumed,
	}
}

// admitCopy drops the copy from a plan where the directory would refuse it as a
// new account: by its schema or its email domains.
func (s *Service) admitCopy(ctx context.Context, p linkPlan) (linkPlan, error) {
	to, err := s.store.Registrar(ctx, p.account.TenantID, p.account.DirectoryID)
	if errors.Is(err, apierr.NotFound) {
		return p.unlinked("the default account store was deleted"), nil
	}
	if err != nil {
		return p, err
	}
	err = checkRequired(p.account, to.GivenNameRequired, to.SurnameRequired)
	if err == nil {
		err = checkDomain(to.CreationPolicy, p.account.Email)
	}
	if err != nil {
		return p.unlinked("no copy can be made: " + apierr.From(err).Reason), nil
	}
	return p, nil
}

// link makes what a plan asks for, all or nothing. The first of several parallel logins of one
// account makes it, and the others follow its link.
func (s *Service) link(ctx context.Context, in directoryapi.LinkAccount, before linkPlan) (p linkPlan, err error) {
	now := s.now()
	err = s.store.Tx(ctx, func(tx *store.Tx) error {
		if p, err = s.confirm(ctx, tx, in, before); err != nil || !p.makes() {
			return err
		}
		if p.outcome == directoryapi.Provisioned {
			p.account.ID, p.account.CreatedAt, p.account.ModifiedAt = id.New(now), now, now
			if err := insertCopy(ctx, tx, p.account, in.Store, now); err != nil {
				return err
			}
		}
		return tx.InsertAccountLink(ctx, store.AccountLink{
			TenantID: in.Tenant, ID: id.New(now), LeftAccountID: in.Account, RightAccountID: p.account.ID,
			CreatedAt: now, // that of a copy, too: a password reset knows its link by that
		})
	})
	return p, err
}

// confirm locks the accounts of a plan and decides once more: nobody else can
// link them until the transaction ends.
func (s *Service) confirm(ctx context.Context, tx *store.Tx, in directoryapi.LinkAccount, before linkPlan) (linkPlan, error) {
	ends := []id.ID{in.Account}
	if before.outcome == directoryapi.Linked {
		ends = append(ends, before.account.ID)
	}
	if _, err := s.lockEnds(ctx, tx, in.Tenant, ends...); err != nil {
		return before, err
	}
	candidate, err := tx.LinkCandidate(ctx, in.Tenant, in.Account, in.Store)
	if err != nil {
		return before, err
	}
	p, err := planLink(in, candidate)
	if err != nil || !p.makes() {
		return p, err
	}
	if p.outcome != before.outcome || p.account.ID != before.account.ID {
		return p, errConcurrentChange
	}
	reaches, err := tx.Reaches(ctx, in.Tenant, in.Account, p.account.ID)
	if err != nil {
		return p, err
	}
	return s.withoutExcluded(p, reaches), nil
}

// insertCopy adds an account that has no password yet, to the group too where
// the default store is one.
func insertCopy(ctx context.Context, tx *store.Tx, a directoryapi.Account, at directoryapi.Store, now time.Time) error {
	if err := tx.InsertAccount(ctx, a, "", nil); err != nil || at.Kind != directoryapi.Groups {
		return err
	}
	return tx.InsertMembership(ctx, store.Membership{
		TenantID: a.TenantID, ID: id.New(now), DirectoryID: a.DirectoryID, GroupID: at.ID, AccountID: a.ID, CreatedAt: now,
	})
}
