package application

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"slices"
	"time"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/application/store"
	"github.com/doorward/doorward/services/application/throttle"
)

// Explanation says what a login attempt would do, and why (explain=true, a dry run). It is only
// for clients with an API key.
type Explanation struct {
	Login  string
	Stores []ConsultedStore // in the order of login
	// Found is the account whose password would be verified, with its account store; nil when
	// the attempt is refused before.
	Found *directoryapi.Authenticated
	// Refusal is the error of the attempt, whatever the password is; nil when the password is
	// verified.
	Refusal *apierr.Error
	// AfterPassword is the error of the attempt with the right password, or nil.
	AfterPassword *apierr.Error
	Throttle      ExplainedThrottle
	Linking       ExplainedLinking
}

// ExplainedThrottle says what the lockout after failed logins makes of the attempt (package throttle).
type ExplainedThrottle struct {
	Limit string // that refuses the attempt, LOGIN_AND_ADDRESS, LOGIN or ADDRESS; empty: none
	Until time.Time
	Known bool // the login name has succeeded at the address, so that only its own failures there count
	// Counters are those of the login name, at whatever address, and of the address.
	Counters []ExplainedCounter
}

// maxExplainedCounters bounds the counters of an explanation.
const maxExplainedCounters = 100

// ExplainedCounter is a counter of failed logins with its window.
type ExplainedCounter struct {
	Limit    string // LOGIN_AND_ADDRESS, LOGIN or ADDRESS
	Failures int
	Most     int
	EndsAt   time.Time
}

// ConsultedStore is an account store in the order of login, with the outcome of the login in it.
// For an organization without account stores, the id of the store is zero.
type ConsultedStore struct {
	store.MappedStore
	Name   string
	Status string // of the store: of a group, not of its directory
	// Provider is the provider of the directory. The accounts of another provider than Native
	// log in at the provider, not by a password.
	Provider string
	Outcome  StoreOutcome
}

// StoreOutcome is the outcome of a login in an account store.
type StoreOutcome string

// The outcomes.
const (
	Decides    StoreOutcome = "DECIDES"
	NoAccount  StoreOutcome = "NO_ACCOUNT"
	NotReached StoreOutcome = "NOT_REACHED" // an earlier store has the account
	Repeated   StoreOutcome = "REPEATED"    // the store is also mapped earlier in the order
	Empty      StoreOutcome = "EMPTY"       // an organization without account stores
	Deleted    StoreOutcome = "DELETED"     // the store was deleted, its mapping will be deleted
)

// ExplainedLinking says how account links would be followed after the right password.
type ExplainedLinking struct {
	Policy  store.LinkingPolicy
	Default directoryapi.Store    // account store; none when its id is zero
	Outcome string                // a directoryapi.LinkOutcome, linksNotReached or linksRefused
	Account *directoryapi.Account // that would log in; a copy that would be created has no id
	Refusal *apierr.Error         // of the account that would log in
	Reason  string
}

// The outcomes of links where no account would log in.
const (
	linksNotReached = "NOT_REACHED" // the attempt is refused before links are followed
	linksRefused    = "REFUSED"     // the linked account may not log in
)

// ExplainLogin explains what a login attempt would do. It refuses a body with the errors of
// AttemptLogin, but needs and verifies no password, and changes nothing.
func (s *Service) ExplainLogin(ctx context.Context, application directoryapi.Ref,
	in LoginAttempt) (Explanation, error) {
	c, err := in.withoutPassword().parse()
	if err != nil {
		return Explanation{}, err
	}
	return s.explain(ctx, application, c)
}

// withoutPassword returns the attempt with an empty password, if its value is only a login name.
func (in LoginAttempt) withoutPassword() LoginAttempt {
	decoded, ok := decodeBase64(in.Value.Value)
	if !ok || len(decoded) == 0 || bytes.ContainsRune(decoded, ':') {
		return in
	}
	in.Value.Value = secure.Secret(base64.StdEncoding.EncodeToString(append(decoded, ':')))
	return in
}

// explain explains a login without its password.
func (s *Service) explain(ctx context.Context, application directoryapi.Ref, c credentials) (Explanation, error) {
	order, err := s.store.LoginOrder(ctx, application.Tenant, application.ID)
	if err != nil {
		return Explanation{}, err
	}
	e := Explanation{Login: c.login}
	if order.Status != directoryapi.Enabled {
		err = apierr.NoSuchAccount.Because(
			"the application is disabled; the attempt itself answers as for an unknown login")
	} else if order, err = s.narrowLoginOrder(ctx, application, order, c.where); err == nil {
		err = s.explainPassword(ctx, &e, application, order)
		if err == nil || apierr.IsOneOf(err, refusalsBeforePassword) {
			err = s.explainThrottle(ctx, &e, application, err)
		}
	}
	if apierr.IsOneOf(err, refusalsBeforePassword) {
		e.Refusal, err = apierr.From(err), nil
	}
	if err != nil {
		return e, err
	}
	err = s.explainLinking(ctx, &e, application, order)
	return e, err
}

// refusalsBeforePassword are the errors of a login before its password is verified.
// refusalsOfLinkedAccount are the errors of an account that links lead to.
var (
	refusalsBeforePassword = []error{
		apierr.NoSuchAccount, apierr.NoStores, apierr.OrgNoStores, apierr.NotMapped, apierr.OrganizationDisabled,
		apierr.TooMany,
	}
	refusalsOfLinkedAccount = append(slices.Clip(throttle.AfterPassword), apierr.NoSuchAccount)
)

// explainPassword explains in which store the account is found, and why the account would be
// refused after the right password. It returns apierr.NoSuchAccount when no store has the login
// name.
func (s *Service) explainPassword(ctx context.Context, e *Explanation, application directoryapi.Ref,
	order store.LoginOrder) error {
	found, err := s.directories.ExplainLogin(
		ctx, directoryapi.ExplainLogin{Tenant: application.Tenant, Stores: order.Stores(), Login: e.Login},
	)
	if err != nil {
		return err
	}
	e.Stores, e.Found = consultedStores(order, found), found.Found
	switch {
	case found.Found == nil:
		return found.Refusal
	case found.Refusal != nil:
		e.AfterPassword = found.Refusal
		return nil
	}
	err = s.checkStoreEnabled(ctx, order.EnabledStores(), *found.Found)
	if errors.Is(err, apierr.OrganizationDisabled) {
		e.AfterPassword, err = apierr.From(err), nil
	}
	return err
}

// explainThrottle explains the counters of failed logins. It returns the error of the limit that refuses the attempt,
// else the refusal by the account stores.
func (s *Service) explainThrottle(ctx context.Context, e *Explanation, application directoryapi.Ref,
	refusal error) error {
	a := s.throttle.NewAttempt(ctx, application, e.Login)
	counters, err := s.store.LoginCounters(ctx, application.Tenant, a.Pair)
	if err != nil {
		return err
	}
	current, err := s.store.CurrentCounters(ctx, application.Tenant, a.Pair, s.now(), maxExplainedCounters)
	if err != nil {
		return err
	}
	for _, c := range current {
		e.Throttle.Counters = append(e.Throttle.Counters, ExplainedCounter{
			Limit: a.LimitName(c.LoginCounterKey), Failures: c.Failures, Most: c.FailureLimit, EndsAt: c.EndsAt,
		})
	}
	e.Throttle.Limit, e.Throttle.Known, err = s.throttle.Explain(&a, counters)
	if err == nil {
		return refusal
	}
	e.Throttle.Until = a.Until
	return err
}

// consultedStores returns the account stores in the order of login, with the outcome of the
// login in each.
func consultedStores(order store.LoginOrder, found directoryapi.ExplainedLogin) []ConsultedStore {
	named := map[directoryapi.Store]directoryapi.NamedStore{}
	for _, store := range found.Stores {
		named[store.Store] = store
	}
	stores, seen, isDecided := make([]ConsultedStore, len(order.Mapped)), map[directoryapi.Store]bool{}, false
	for i, mapped := range order.Mapped {
		accountStore := mapped.Store()
		details, exists := named[accountStore]
		stores[i] = ConsultedStore{
			MappedStore: mapped, Name: details.Name, Status: details.Status, Provider: details.ProviderID,
			Outcome: NoAccount,
		}
		switch {
		case accountStore.ID.IsZero():
			stores[i].Outcome = Empty
		case seen[accountStore]:
			stores[i].Outcome = Repeated
		case isDecided:
			stores[i].Outcome = NotReached
		case !exists:
			stores[i].Outcome = Deleted
		case found.Found != nil && found.Found.Store == accountStore:
			stores[i].Outcome, isDecided = Decides, true
		}
		seen[accountStore] = true
	}
	return stores
}

// explainLinking explains how account links would be followed after the right password.
func (s *Service) explainLinking(ctx context.Context, e *Explanation, application directoryapi.Ref,
	order store.LoginOrder) (err error) {
	l := &e.Linking
	owner := application.ID
	if !order.NamedOrganization.IsZero() {
		owner = order.NamedOrganization
	}
	if l.Policy, err = s.store.LinkingPolicyOf(ctx, application.Tenant, owner); err != nil {
		return err
	}
	l.Default = order.Linking.Default
	if e.Found == nil || e.Refusal != nil || e.AfterPassword != nil {
		l.Outcome, l.Reason = linksNotReached, "the attempt is refused before links are looked for"
		return nil
	}
	if reason := reasonLinksIgnored(order.Linking, *e.Found); reason != "" {
		l.Outcome, l.Reason, l.Account = string(directoryapi.Unchanged), reason, &e.Found.Account
		return nil
	}
	linked, err := s.findLinkedAccount(ctx, order.Linking, e.Found.Account, true)
	if apierr.IsOneOf(err, refusalsOfLinkedAccount) {
		l.Outcome, l.Refusal, l.Reason = linksRefused, apierr.From(err), "links lead to an account that may not log in"
		return nil
	}
	l.Outcome, l.Account, l.Reason = string(linked.Outcome), &linked.Account, linked.Reason
	return err
}
