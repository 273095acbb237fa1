package contract_test

import (
	"slices"
	"testing"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/id"
)

func reaches(t *testing.T, s subject) {
	n, other := newTenant(t, s), newTenant(t, s)
	mapped, closed, unmapped := n.directory(t, "Mapped"), n.directory(t, "Closed"), n.directory(t, "Unmapped")
	shop, disabled := s.NewApplication(t, n.id), s.NewApplication(t, n.id)
	s.Map(t, n.id, shop, mapped)
	s.Map(t, n.id, shop, closed)
	s.Map(t, n.id, disabled, mapped)
	enabled := n.account(t, mapped, "jo@example.test", directoryapi.Enabled)
	idle := n.account(t, mapped, "idle@example.test", directoryapi.Disabled)
	shut := n.account(t, closed, "shut@example.test", directoryapi.Enabled)
	stranger := n.account(t, unmapped, "ann@example.test", directoryapi.Disabled)
	s.DisableDirectory(t, n.ref(closed))
	s.Disable(t, n.ref(disabled))

	for _, c := range []struct {
		what                 string
		application, account id.ID
		want                 bool
	}{
		{"an enabled account in a store", shop, enabled, true},
		{"a disabled account", shop, idle, true},
		{"a disabled store", shop, shut, true},
		{"a disabled application", disabled, enabled, true},
		{"no store of the application", shop, stranger, false},
		{"an account that never was", shop, newID(), false},
		{"an account of another tenant", shop, other.owner, false},
	} {
		t.Run(c.what, func(t *testing.T) {
			in := applicationapi.HasAccountRequest{Tenant: n.id, Application: c.application, Account: c.account}
			answer, err := s.API.HasAccount(t.Context(), in)
			refuse(answer, err)(t, nil)
			equal(t, "reached", answer.Reached, c.want)
		})
	}
	for what, application := range map[string]id.ID{"an application that never was": newID(),
		"an application of another tenant": other.signUp.Application} {
		t.Run(what, func(t *testing.T) {
			in := applicationapi.HasAccountRequest{Tenant: n.id, Application: application, Account: enabled}
			refuse(s.API.HasAccount(t.Context(), in))(t, apierr.NotFound)
		})
	}
}

func accessChecks(t *testing.T, s subject) {
	n, other := newTenant(t, s), newTenant(t, s)
	open, closed, unmapped := n.directory(t, "Open"), n.directory(t, "Closed"), n.directory(t, "Unmapped")
	shop, disabled := s.NewApplication(t, n.id), s.NewApplication(t, n.id)
	for _, application := range []id.ID{shop, disabled} {
		s.Map(t, n.id, application, open)
		s.Map(t, n.id, application, closed)
	}
	enabled := n.account(t, open, "jo@example.test", directoryapi.Enabled)
	idle := n.account(t, open, "idle@example.test", directoryapi.Disabled)
	shut := n.account(t, closed, "shut@example.test", directoryapi.Enabled)
	idleAndShut := n.account(t, closed, "idle@example.test", directoryapi.Disabled)
	stranger := n.account(t, unmapped, "ann@example.test", directoryapi.Enabled)
	s.DisableDirectory(t, n.ref(closed))
	s.Disable(t, n.ref(disabled))

	for _, c := range []struct {
		what                 string
		application, account id.ID
		want                 error
	}{
		{"an enabled account in a store", shop, enabled, nil},
		{"a disabled account", shop, idle, apierr.TokenAccountDisabled},
		{"an account that never was", shop, newID(), apierr.TokenAccountDisabled},
		{"an account of another tenant", shop, other.owner, apierr.TokenAccountDisabled},
		{"a disabled store", shop, shut, apierr.TokenStoreDisabled},
		{"no store of the application", shop, stranger, apierr.TokenAccountUnreachable},
		{"an application without stores", s.NewApplication(t, n.id), enabled, apierr.TokenAccountUnreachable},
		{"the account's own state goes before its store's", shop, idleAndShut, apierr.TokenAccountDisabled},
		{"a disabled application", disabled, enabled, apierr.TokenApplicationDisabled},
		{"a disabled application goes before a disabled store", disabled, shut, apierr.TokenApplicationDisabled},
		{"a disabled application goes before reach", disabled, stranger, apierr.TokenApplicationDisabled},
		{"the account's own state goes before the application's", disabled, idle, apierr.TokenAccountDisabled},
		{"an application that never was", newID(), enabled, apierr.NotFound},
		{"an application of another tenant", other.signUp.Application, enabled, apierr.NotFound},
	} {
		t.Run(c.what, func(t *testing.T) {
			asked := applicationapi.CheckAccess{Tenant: n.id, Application: c.application, Account: c.account}
			account, err := s.API.CheckAccess(t.Context(), asked)
			refuse(account, err)(t, c.want)
			if c.want == nil {
				equal(t, "the account", account.ID, c.account)
				for what, resource := range map[string]id.ID{"application": c.application, "account": c.account, "directory": open} {
					equal(t, "that it depends on the "+what, slices.Contains(account.DependsOn, resource), true)
				}
			}
		})
	}
}
