package provider

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/services/directory"
	"github.com/doorward/doorward/services/directory/maildomain"
	"github.com/doorward/doorward/services/directory/store"
)

// maxLinkAttempts bounds how many times a login retries because concurrent requests changed what
// it had read.
const maxLinkAttempts = 4

// errConcurrentChange means that the plan made before locking is not valid any more.
var errConcurrentChange = errors.New("directory: another login made the link")

// linkPlan is the outcome of account linking at a login: the account that logs in, and what has to
// be created for that.
type linkPlan struct {
	candidate store.LinkCandidate
	account   directoryapi.Account // the account that logs in; a copy that is not created yet has no id
	outcome   directoryapi.LinkOutcome
	reason    string
}

// createsLink reports whether the plan creates a link.
func (p linkPlan) createsLink() bool {
	return p.outcome == directoryapi.Linked || p.outcome == directoryapi.Provisioned
}

// withoutLink returns the plan in which the authenticated account itself logs in.
func (p linkPlan) withoutLink(reason string) linkPlan {
	p.account, p.outcome, p.reason = p.candidate.Account, directoryapi.Unchanged, reason
	return p
}

// withAccount returns the plan in which another account logs in.
func (p linkPlan) withAccount(account directoryapi.Account, outcome directoryapi.LinkOutcome, reason string) linkPlan {
	p.account, p.outcome, p.reason = account, outcome, reason
	return p
}

// LinkedAccount returns the account that logs in when an account has authenticated: that account,
// or the one of the default account store that it is linked to
// (docs/interface/account-linking.md#outcome-at-login). The policy that allows linking is in
// services/application/linking.go.
func (s *Service) LinkedAccount(ctx context.Context,
	in directoryapi.LinkedAccountRequest) (directoryapi.LinkedAccount, error) {
	p, err := s.resolveLink(ctx, in)
	if errors.Is(err, apierr.NotFound) {
		err = apierr.NoSuchAccount.Because("the account is not there any more")
	}
	if err != nil {
		return directoryapi.LinkedAccount{}, err
	}
	account, err := s.core.WithVerificationToken(p.account)
	return directoryapi.LinkedAccount{Account: account, Outcome: p.outcome, Reason: p.reason}, err
}

// resolveLink plans without locks, as most logins follow an existing link; a plan that creates
// something is checked again under locks. Where concurrent logins were first, it retries and finds
// what they have created.
func (s *Service) resolveLink(ctx context.Context, in directoryapi.LinkedAccountRequest) (linkPlan, error) {
	for attempt := 1; ; attempt++ {
		candidate, err := s.store.LinkCandidate(ctx, in.Tenant, in.Account, in.Store)
		if err != nil {
			return linkPlan{}, err
		}
		p, err := s.planCheckedLink(ctx, in, candidate)
		switch {
		case err != nil || !p.createsLink():
			return p, err
		case in.DryRun:
			links, err := s.store.LinksOf(ctx, in.Tenant, in.Account, p.account.ID)
			return s.checkLinkConflicts(p, links), err
		}
		created, err := s.createLink(ctx, in, p)
		changed := errors.Is(err, errConcurrentChange) || errors.Is(err, apierr.Exists) ||
			errors.Is(err, apierr.NotFound)
		switch {
		case !changed:
			return created, err
		case attempt == maxLinkAttempts:
			return p.withoutLink("others changed the accounts at the same time; the next login tries again"), nil
		}
	}
}

// planCheckedLink is planLink with what the directories of both accounts allow.
func (s *Service) planCheckedLink(ctx context.Context, in directoryapi.LinkedAccountRequest,
	a store.LinkCandidate) (linkPlan, error) {
	p, err := planLink(in, a)
	if err != nil || !p.createsLink() {
		return p, err
	}
	if p, err = s.checkLinkDomains(ctx, p); err != nil || p.outcome != directoryapi.Provisioned {
		return p, err
	}
	return s.checkCopy(ctx, p)
}

// planLink decides which account logs in. It returns an error where that account may not log in
// (7101, 7102, 7105, 7106).
func planLink(in directoryapi.LinkedAccountRequest, a store.LinkCandidate) (linkPlan, error) {
	p := decideLink(in, a)
	if p.outcome == directoryapi.Unchanged || p.outcome == directoryapi.Provisioned {
		return p, nil
	}
	err := directory.CheckLoginAllowed(store.Candidate{
		Account: p.account, DirectoryStatus: a.TargetStatus, StoreStatus: a.StoreStatus,
	})
	if err != nil {
		refusal := apierr.From(err)
		err = refusal.Because("the login leads to the account %s of the default account store: %s", p.account.ID,
			refusal.Reason)
	}
	return p, err
}

// checkLinkConflicts returns the plan without its link where existing links of its accounts
// exclude it (7503, 7505).
func (s *Service) checkLinkConflicts(p linkPlan, links []store.DirectedLink) linkPlan {
	from, to := p.candidate.Account, p.account
	l := store.AccountLink{TenantID: from.TenantID, LeftAccountID: from.ID, RightAccountID: to.ID}
	if err := s.checkLink(l, map[id.ID]id.ID{from.ID: from.DirectoryID, to.ID: to.DirectoryID}, links); err != nil {
		return p.withoutLink("no link can be made: " + apierr.From(err).Reason)
	}
	return p
}

// decideLink decides about the account linking of a login across directories (link user) by the
// table of docs/interface/account-linking.md#outcome-at-login. For a disabled account store
// nothing is created; an existing link is followed.
func decideLink(in directoryapi.LinkedAccountRequest, a store.LinkCandidate) linkPlan {
	p := linkPlan{candidate: a}
	switch {
	case a.TargetID.IsZero():
		return p.withoutLink("the default account store was deleted")
	case a.InStore:
		return p.withoutLink("the account is in the default account store")
	case a.TargetID == a.DirectoryID:
		return p.withoutLink("the account is in the directory of the default account store, beside its group; " +
			"accounts of one directory are not linked")
	}
	if i := slices.IndexFunc(a.Counterparts, func(c store.Counterpart) bool { return c.Linked }); i >= 0 {
		if c := a.Counterparts[i]; c.InStore {
			return p.withAccount(c.Account, directoryapi.Followed,
				"the account is linked to one of the default account store")
		}
		return p.withoutLink(
			"the account is linked to one of the same directory as the default account store, outside of its group")
	}
	switch {
	case a.TargetStatus != directoryapi.Enabled || a.StoreStatus != directoryapi.Enabled:
		return p.withoutLink("the default account store is disabled")
	case in.ByEmail:
		// An account with an unverified email may have been created with somebody else's address.
		if i := slices.IndexFunc(a.Counterparts, func(c store.Counterpart) bool {
			return c.InStore && a.SameEmail(c) && directory.HasVerifiedEmail(a.Account) &&
				directory.HasVerifiedEmail(c.Account)
		}); i >= 0 {
			return p.withAccount(a.Counterparts[i].Account, directoryapi.Linked,
				"the default account store has an account of the same email, and both are verified")
		}
	}
	switch {
	case len(a.Counterparts) > 0:
		return p.withoutLink("the directory of the default account store has an account of that email or user name, " +
			"which the account is not linked to (a match needs that both have verified their email)")
	case !in.Provision:
		return p.withoutLink("the account is linked to none of the default account store, and none is to be made")
	case a.TargetProvider != directoryapi.Native:
		return p.withoutLink("the default account store mirrors another, where its accounts are made")
	}
	return p.withAccount(copyOfAccount(a), directoryapi.Provisioned,
		"a copy of the account is made in the default account store")
}

// copyOfAccount returns the copy of an account that is created in the default account store
// (provisioning): without password, groups and custom data.
func copyOfAccount(a store.LinkCandidate) directoryapi.Account {
	return directoryapi.Account{
		TenantID: a.TenantID, DirectoryID: a.TargetID, Username: a.Username, Email: a.Email,
		GivenName: a.GivenName, MiddleName: a.MiddleName, Surname: a.Surname, Locale: a.Locale,
		Status: directoryapi.Enabled, EmailVerificationStatus: a.EmailVerificationStatus, EmailAssumed: a.EmailAssumed,
	}
}

// checkCopy returns the plan without its copy where the directory would refuse it as a new
// account, by its schema or its email domains.
func (s *Service) checkCopy(ctx context.Context, p linkPlan) (linkPlan, error) {
	policy, err := s.store.RegistrationPolicy(ctx, p.account.TenantID, p.account.DirectoryID)
	if errors.Is(err, apierr.NotFound) {
		return p.withoutLink("the default account store was deleted"), nil
	}
	if err != nil {
		return p, err
	}
	missing := directory.CheckRequired(p.account, policy.GivenNameRequired, policy.SurnameRequired)
	if err := cmp.Or(missing, maildomain.Check(policy.CreationPolicy, p.account.Email)); err != nil {
		return p.withoutLink("no copy can be made: " + apierr.From(err).Reason), nil
	}
	return p, nil
}

// checkLinkDomains returns the plan without its link where one of its accounts is in a mirror
// directory and has an email outside the domains of that mirror.
func (s *Service) checkLinkDomains(ctx context.Context, p linkPlan) (linkPlan, error) {
	for _, a := range []directoryapi.Account{p.candidate.Account, p.account} {
		err := s.core.CheckAccountDomain(ctx, a)
		if errors.Is(err, apierr.OutsideDomains) {
			return p.withoutLink("no link can be made: " + apierr.From(err).Reason), nil
		}
		if err != nil && !errors.Is(err, apierr.NotFound) {
			return p, err
		}
	}
	return p, nil
}

// createLink creates the link and, where the plan has one, the copy, in one transaction. Of
// concurrent logins of one account the first creates them, and the others follow the link.
func (s *Service) createLink(ctx context.Context, in directoryapi.LinkedAccountRequest,
	before linkPlan) (p linkPlan, err error) {
	now := s.now()
	err = s.store.Tx(ctx, func(tx *store.Tx) error {
		if p, err = s.replanUnderLock(ctx, tx, in, before); err != nil || !p.createsLink() {
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
			CreatedAt: now, // equal to that of a copy: DeleteProvisionedLinks finds the link by it
		})
	})
	return p, err
}

// replanUnderLock locks the accounts of a plan and decides again: no other transaction can link
// them before this one ends.
func (s *Service) replanUnderLock(ctx context.Context, tx *store.Tx, in directoryapi.LinkedAccountRequest,
	before linkPlan) (
	linkPlan, error,
) {
	ends := []id.ID{in.Account}
	if before.outcome == directoryapi.Linked {
		ends = append(ends, before.account.ID)
	}
	if _, err := s.lockAccountsInOrder(ctx, tx, in.Tenant, ends...); err != nil {
		return before, err
	}
	candidate, err := tx.LinkCandidate(ctx, in.Tenant, in.Account, in.Store)
	if err != nil {
		return before, err
	}
	p, err := planLink(in, candidate)
	if err != nil || !p.createsLink() {
		return p, err
	}
	if p.outcome != before.outcome || p.account.ID != before.account.ID {
		return p, errConcurrentChange
	}
	links, err := tx.LinksOf(ctx, in.Tenant, in.Account, p.account.ID)
	if err != nil {
		return p, err
	}
	return s.checkLinkConflicts(p, links), nil
}

// insertCopy inserts a copy of an account, which has no password, and makes it a member of the
// group where the default account store is a group.
func insertCopy(ctx context.Context, tx *store.Tx, a directoryapi.Account, at directoryapi.Store, now time.Time) error {
	if err := tx.InsertAccount(ctx, a, "", nil); err != nil || at.Kind != directoryapi.Groups {
		return err
	}
	return tx.InsertMembership(ctx, store.Membership{
		TenantID: a.TenantID, ID: id.New(now), DirectoryID: a.DirectoryID, GroupID: at.ID, AccountID: a.ID,
		CreatedAt: now,
	})
}
