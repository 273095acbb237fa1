package application

import (
	"context"
	"errors"
	"slices"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/services/application/store"
)

// Explanation is what a login attempt would do. It is for holders of an API key.
type Explanation struct {
	Login  string
	Stores []ConsultedStore // in the order of login
	// Found is the account whose password would be compared, and the store that decides; nil
	// when the attempt is refused before.
	Found *directoryapi.Authenticated
	// Refusal is what the attempt fails with whatever its password is; nil when
	// the password is compared.
	Refusal *apierr.Error
	// AfterPassword is what the attempt fails with though its password is right.
	AfterPassword *apierr.Error
	Linking       ExplainedLinking
}

// ConsultedStore is an account store on the way of a login. An organization
// without account stores is one that is no store.
type ConsultedStore struct {
	store.MappedStore
	Name   string
	Status string // of the store; of a group, it says nothing of its directory
	// Provider is that of the directory: accounts of another than Native log in
	// there, and not with a password.
	Provider string
	Outcome  StoreOutcome
}

// StoreOutcome is what becomes of a login in an account store.
type StoreOutcome string

// The outcomes.
const (
	Decides    StoreOutcome = "DECIDES"
	NoAccount  StoreOutcome = "NO_ACCOUNT"
	NotReached StoreOutcome = "NOT_REACHED" // a store before it decides
	Repeated   StoreOutcome = "REPEATED"    // it comes earlier too
	Empty      StoreOutcome = "EMPTY"       // an organization without account stores
	Deleted    StoreOutcome = "DELETED"     // it is gone, and its mapping is about to go
)

// ExplainedLinking is what account links would do after the right password.
type ExplainedLinking struct {
	Policy  store.LinkingPolicy
	Default directoryapi.Store    // account store; none when its id is zero
	Outcome string                // a directoryapi.LinkOutcome, or one of the two below
	Account *directoryapi.Account // that would log in; a copy that would be made has no id
	Refusal *apierr.Error         // of the account that would log in
	Reason  string
}

// The outcomes of links where no account would log in.
const (
	linksNotReached = "NOT_REACHED" // the attempt is refused before
	linksRefused    = "REFUSED"     // they lead to an account that may not log in
)

// Explain explains what a login attempt would do. It reads the body as Attempt does
// and refuses it with the same errors, but compares no password and changes nothing.
func (s *Service) Explain(ctx context.Context, application directoryapi.Ref, in LoginAttempt) (Explanation, error) {
	a, err := in.read()
	if err != nil {
		return Explanation{}, err
	}
	order, err := s.store.LoginOrder(ctx, application.Tenant, application.ID)
	if err != nil {
		return Explanation{}, err
	}
	e := Explanation{Login: a.login}
	if order.Status != directoryapi.Enabled {
		err = apierr.NoSuchAccount.Because("the application is disabled; the attempt itself answers as for an unknown login")
	} else if order, err = s.narrowed(ctx, application, order, a.where); err == nil {
		err = s.explainPassword(ctx, &e, application, order)
	}
	if is(err, refusalsBefore) {
		e.Refusal, err = apierr.From(err), nil
	}
	if err == nil {
		err = s.explainLinking(ctx, &e, application, order)
	}
	return e, err
}

// refusalsBefore are those of a login whose body is right, before its password is
// compared. refusalsBehind are those of the account that links lead it to.
var (
	refusalsBefore = []error{
		apierr.NoSuchAccount, apierr.NoStores, apierr.OrgNoStores, apierr.NotMapped, apierr.OrganizationDisabled,
	}
	refusalsBehind = append(slices.Clip(afterPassword), apierr.NoSuchAccount)
)

func is(err error, one []error) bool {
	return slices.ContainsFunc(one, func(refusal error) bool { return errors.Is(err, refusal) })
}

// explainPassword explains which store decides, and what the account there is
// refused for after the password. It returns apierr.NoSuchAccount when none has the
// login.
func (s *Service) explainPassword(ctx context.Context, e *Explanation, application directoryapi.Ref, order store.LoginOrder) error {
	found, err := s.directories.ExplainLogin(
		ctx, directoryapi.ExplainLogin{Tenant: application.Tenant, Stores: order.Stores(), Login: e.Login},
	)
	if err != nil {
		return err
	}
	e.Stores, e.Found = consulted(order, found), found.Found
	switch {
	case found.Found == nil:
		return found.Refusal
	case found.Refusal != nil:
		e.AfterPassword = found.Refusal
		return nil
	}
	err = s.checkOpen(ctx, order.Open(), *found.Found)
	if errors.Is(err, apierr.OrganizationDisabled) {
		e.AfterPassword, err = apierr.From(err), nil
	}
	return err
}

// consulted returns the account stores in the order of login, with what becomes of
// the login in each.
func consulted(order store.LoginOrder, found directoryapi.ExplainedLogin) []ConsultedStore {
	named := map[directoryapi.Store]directoryapi.NamedStore{}
	for _, store := range found.Stores {
		named[store.Store] = store
	}
	stores, seen, isDecided := make([]ConsultedStore, len(order.Mapped)), map[directoryapi.Store]bool{}, false
	for i, mapped := range order.Mapped {
		at := mapped.Store()
		facts, isThere := named[at]
		stores[i] = ConsultedStore{
			MappedStore: mapped, Name: facts.Name, Status: facts.Status, Provider: facts.ProviderID, Outcome: NoAccount,
		}
		switch {
		case at.ID.IsZero():
			stores[i].Outcome = Empty
		case seen[at]:
			stores[i].Outcome = Repeated
		case isDecided:
			stores[i].Outcome = NotReached
		case !isThere:
			stores[i].Outcome = Deleted
		case found.Found != nil && found.Found.Store == at:
			stores[i].Outcome, isDecided = Decides, true
		}
		seen[at] = true
	}
	return stores
}

// explainLinking explains what account links would do after the right password.
func (s *Service) explainLinking(ctx context.Context, e *Explanation, application directoryapi.Ref, order store.LoginOrder) (err error) {
	l := &e.Linking
	owner := application.ID
	if !order.Named.IsZero() {
		owner = order.Named
	}
	if l.Policy, err = s.store.LinkingPolicyOf(ctx, application.Tenant, owner); err != nil {
		return err
	}
	l.Default = order.Linking.Default
	if e.Found == nil || e.AfterPassword != nil {
		l.Outcome, l.Reason = linksNotReached, "the attempt is refused before links are looked for"
		return nil
	}
	if reason := asItself(order.Linking, *e.Found); reason != "" {
		l.Outcome, l.Reason, l.Account = string(directoryapi.Unchanged), reason, &e.Found.Account
		return nil
	}
	to, err := s.linkedAccount(ctx, order.Linking, e.Found.Account, true)
	if is(err, refusalsBehind) {
		l.Outcome, l.Refusal, l.Reason = linksRefused, apierr.From(err), "links lead to an account that may not log in"
		return nil
	}
	l.Outcome, l.Account, l.Reason = string(to.Outcome), &to.Account, to.Reason
	return err
}
