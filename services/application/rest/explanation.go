package rest

import (
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/services/application"
)

// explanationView is the answer to a login attempt with explain=true.
type explanationView struct {
	Login         string               `json:"login"`
	AccountStores []consultedStoreView `json:"accountStores"` // in the order of login
	Decision      decisionView         `json:"decision"`
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
	PasswordCompared bool         `json:"passwordCompared"`
	AccountStore     *href.Link   `json:"accountStore"`
	Account          *href.Link   `json:"account"`
	Refusal          *refusalView `json:"refusal"`              // before the password is verified
	AfterPassword    *refusalView `json:"refusalAfterPassword"` // after the right password
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

func (v views) explanation(e application.Explanation) explanationView {
	view := explanationView{Login: e.Login, AccountStores: make([]consultedStoreView, len(e.Stores))}
	for i, store := range e.Stores {
		view.AccountStores[i] = v.consultedStore(store)
	}
	view.Decision = decisionView{PasswordCompared: e.Refusal == nil, Refusal: refusal(e.Refusal),
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
		Default:      v.accountStore(e.Linking.Default), Outcome: e.Linking.Outcome, Refusal: refusal(e.Linking.Refusal),
		Reason: e.Linking.Reason,
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

func refusal(e *apierr.Error) *refusalView {
	if e == nil {
		return nil
	}
	return &refusalView{Status: e.Status, Code: e.Code, Message: e.Message, DeveloperMessage: e.DeveloperMessage()}
}
