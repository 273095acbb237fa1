package rest

import (
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/rest"
	"github.com/doorward/doorward/pkg/rest/directoryview"
	"github.com/doorward/doorward/services/application"
)

// explanationView is the answer to a login attempt with explain=true.
type explanationView struct {
	Login         string               `json:"login"`
	AccountStores []consultedStoreView `json:"accountStores"` // in the order of login
	Decision      decisionView         `json:"decision"`
	Throttle      throttleView         `json:"throttle"`
	Linking       linkingView          `json:"linking"`
}

type consultedStoreView struct {
	AccountStore *href.Link               `json:"accountStore"` // null: an organization without account stores
	Name         *string                  `json:"name"`         // null: the store was deleted
	Status       *string                  `json:"status"`
	ProviderID   *string                  `json:"providerId"`   // of the directory
	Organization *viaOrganizationView     `json:"organization"` // through which the store is mapped; null: directly
	Outcome      application.StoreOutcome `json:"outcome"`
}

type viaOrganizationView struct {
	Href    string `json:"href"`
	NameKey string `json:"nameKey"`
	Status  string `json:"status"`
}

type decisionView struct {
	PasswordCompared bool         `json:"passwordCompared"` // the former name of the next
	WouldBeCompared  bool         `json:"passwordWouldBeCompared"`
	AccountStore     *href.Link   `json:"accountStore"`
	Account          *href.Link   `json:"account"`
	Refusal          *refusalView `json:"refusal"`              // before the password is verified
	AfterPassword    *refusalView `json:"refusalAfterPassword"` // after the right password
}

// throttleView is what the lockout after failed logins makes of the attempt.
type throttleView struct {
	Limit        *string       `json:"limit"` // that refuses the attempt; null: none
	Until        *rest.Time    `json:"until"`
	AddressKnown bool          `json:"addressKnown"`
	Counters     []counterView `json:"counters"`
}

type counterView struct {
	Limit    string    `json:"limit"`
	Failures int       `json:"failures"`
	Most     int       `json:"most"`
	EndsAt   rest.Time `json:"endsAt"`
}

type linkingView struct {
	Policy       href.Link    `json:"accountLinkingPolicy"`
	Status       string       `json:"status"` // of the policy
	Provisioning string       `json:"automaticProvisioning"`
	Matching     *string      `json:"matchingProperty"`
	Default      *href.Link   `json:"defaultAccountStore"`
	Outcome      string       `json:"outcome"`
	Account      *href.Link   `json:"account"` // null: no account, or a copy that does not exist yet
	Refusal      *refusalView `json:"refusal"`
	Reason       string       `json:"reason"`
}

// refusalView is the error that the attempt itself would return.
type refusalView struct {
	Status           int    `json:"status"`
	Code             int    `json:"code"`
	Message          string `json:"message"`
	DeveloperMessage string `json:"developerMessage"`
}

// Explanation is the answer to a login attempt with explain=true, for a command.
func Explanation(svc *application.Service, base href.Base, e application.Explanation) any {
	return views{Views: directoryview.Views{Base: base, Alias: svc.Alias()}}.explanation(e)
}

func (v views) explanation(e application.Explanation) explanationView {
	view := explanationView{Login: e.Login, AccountStores: make([]consultedStoreView, len(e.Stores))}
	for i, store := range e.Stores {
		view.AccountStores[i] = v.consultedStore(store)
	}
	view.Throttle = throttle(e.Throttle)
	view.Decision = decisionView{PasswordCompared: e.Refusal == nil, WouldBeCompared: e.Refusal == nil,
		Refusal:       refusal(e.Refusal),
		AfterPassword: refusal(e.AfterPassword)}
	if e.Found != nil {
		view.Decision.AccountStore = v.accountStore(e.Found.Store)
		view.Decision.Account = v.Base.OptionalLink("accounts", e.Found.Account.ID)
	}
	policy := e.Linking.Policy
	view.Linking = linkingView{
		Policy: v.Base.Link("accountLinkingPolicies", policy.ID), Status: policy.Status,
		Provisioning: policy.AutomaticProvisioning,
		Matching:     policy.MatchingProperty,
		Default:      v.accountStore(e.Linking.Default), Outcome: e.Linking.Outcome,
		Refusal: refusal(e.Linking.Refusal),
		Reason:  e.Linking.Reason,
	}
	if e.Linking.Account != nil {
		view.Linking.Account = v.Base.OptionalLink("accounts", e.Linking.Account.ID)
	}
	return view
}

func (v views) consultedStore(s application.ConsultedStore) consultedStoreView {
	view := consultedStoreView{AccountStore: v.accountStore(s.Store()), Outcome: s.Outcome}
	if s.Name != "" {
		view.Name, view.Status = &s.Name, &s.Status
		provider := v.ProviderID(s.Provider)
		view.ProviderID = &provider
	}
	if !s.OrganizationID.IsZero() {
		view.Organization = &viaOrganizationView{Href: v.Base.To("organizations", s.OrganizationID), NameKey: s.NameKey,
			Status: s.OrganizationStatus}
	}
	return view
}

// accountStore returns the link to an account store, or nil for none.
func (v views) accountStore(s directoryapi.Store) *href.Link {
	return v.Base.OptionalLink(s.Kind, s.ID)
}

func throttle(t application.ExplainedThrottle) throttleView {
	view := throttleView{AddressKnown: t.Known, Counters: make([]counterView, len(t.Counters))}
	if t.Limit != "" {
		until := rest.Time(t.Until)
		view.Limit, view.Until = &t.Limit, &until
	}
	for i, c := range t.Counters {
		view.Counters[i] = counterView{Limit: c.Limit, Failures: c.Failures, Most: c.Most, EndsAt: rest.Time(c.EndsAt)}
	}
	return view
}

func refusal(e *apierr.Error) *refusalView {
	if e == nil {
		return nil
	}
	return &refusalView{Status: e.Status, Code: e.Code, Message: e.Message, DeveloperMessage: e.DeveloperMessage()}
}
