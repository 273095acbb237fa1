package contract_test

import (
	"testing"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/id"
)

func administrators(t *testing.T, s subject) {
	n, other := newTenant(t, s), newTenant(t, s)
	staff, closed, unmapped := n.directory(t, "Staff"), n.directory(t, "Closed"), n.directory(t, "Unmapped")
	s.Map(t, n.id, n.signUp.Console, staff)
	s.Map(t, n.id, n.signUp.Console, closed)
	jo, idle := n.account(t, staff, "jo@example.test", directoryapi.Enabled),
		n.account(t, staff, "idle@example.test", directoryapi.Disabled)
	shut, user := n.account(t, closed, "shut@example.test", directoryapi.Enabled),
		n.account(t, unmapped, "ann@example.test", directoryapi.Enabled)
	s.DisableDirectory(t, n.ref(closed))

	for _, c := range []struct {
		what    string
		account id.ID
		want    error
	}{
		{"the owner", n.owner, nil},
		{"an account of another directory that is mapped to the console", jo, nil},
		{"a disabled account", idle, apierr.TokenAccountDisabled},
		{"an account of a disabled directory", shut, apierr.TokenStoreDisabled},
		{"an account of a directory that is not mapped to the console", user, apierr.TokenAccountUnreachable},
		{"an account that never was", newID(), apierr.TokenAccountDisabled},
		{"an administrator of another tenant", other.owner, apierr.TokenAccountDisabled},
	} {
		t.Run(c.what, func(t *testing.T) {
			account, err := s.API.Administrator(t.Context(), n.ref(c.account))
			refuse(account, err)(t, c.want)
			if c.want == nil {
				equal(t, "who administers", account.ID, c.account)
			}
		})
	}
	t.Run("a tenant that never was", func(t *testing.T) {
		refuse(s.API.Administrator(t.Context(), directoryapi.Ref{Tenant: newID(), ID: n.owner}))(t, apierr.NotFound)
	})
}
