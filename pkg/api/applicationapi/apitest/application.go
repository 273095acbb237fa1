package apitest

import (
	"testing"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
)

func applications(t *testing.T, s Subject) {
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
	t.Run("one that never was", func(t *testing.T) {
		refuse(s.API.Application(t.Context(), n.ref(newID())))(t, apierr.NotFound)
	})
	t.Run("one of another tenant", func(t *testing.T) {
		refuse(s.API.Application(t.Context(), other.ref(n.signUp.Application)))(t, apierr.NotFound)
	})
}
