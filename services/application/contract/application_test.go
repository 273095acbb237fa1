package contract_test

import (
	"maps"
	"testing"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
)

func applications(t *testing.T, s subject) {
	n, other := newTenant(t, s), newTenant(t, s)

	t.Run("one without account stores has no defaults", func(t *testing.T) {
		bare := s.NewApplication(t, n.id)
		a := must(s.API.Application(t.Context(), n.ref(bare)))(t)
		equal(t, "the id", a.ID, bare)
		equal(t, "the tenant", a.TenantID, n.id)
		equal(t, "the status", a.Status, directoryapi.Enabled)
		equal(t, "the default account store, as there is none", a.DefaultAccountStore.IsZero(), true)
		equal(t, "the default group store, as there is none", a.DefaultGroupStore.IsZero(), true)
		if a.AuthorizedCallbackURIs == nil || a.AuthorizedOriginURIs == nil {
			t.Error("a list is nil instead of empty")
		}
		if a.SAMLPolicyID.IsZero() || a.WebConfigID.IsZero() || a.AccountLinkingPolicyID.IsZero() {
			t.Errorf("a satellite has no id: %+v", a)
		}
	})
	t.Run("its data is given by its keys", func(t *testing.T) {
		of := func(at directoryapi.Ref, keys ...string) applicationapi.CustomDataRequest {
			return applicationapi.CustomDataRequest{Ref: at, Keys: keys}
		}
		at := n.ref(s.NewApplication(t, n.id))
		equal(t, "the number of values of one without data",
			len(must(s.API.ApplicationData(t.Context(), of(at, "plan")))(t).Values), 0)
		s.SetData(t, at, `{"plan":"gold","seats":12,"limits":{"a":1}}`)
		got := must(s.API.ApplicationData(t.Context(), of(at, "plan", "seats", "limits", "absent")))(t).Values
		if !maps.Equal(got, map[string]string{"plan": "gold", "seats": "12"}) {
			t.Errorf("the values are %v", got)
		}
		equal(t, "the number of values of no key", len(must(s.API.ApplicationData(t.Context(), of(at)))(t).Values), 0)
		refuse(s.API.ApplicationData(t.Context(), of(n.ref(newID()), "plan")))(t, apierr.NotFound)
		refuse(s.API.ApplicationData(t.Context(), of(other.ref(at.ID), "plan")))(t, apierr.NotFound)
	})
	t.Run("one that never was", func(t *testing.T) {
		refuse(s.API.Application(t.Context(), n.ref(newID())))(t, apierr.NotFound)
	})
	t.Run("one of another tenant", func(t *testing.T) {
		refuse(s.API.Application(t.Context(), other.ref(n.signUp.Application)))(t, apierr.NotFound)
	})
}
