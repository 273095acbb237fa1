package contract_test

import (
	"slices"
	"testing"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
)

func loginContexts(t *testing.T, s subject) {
	n, other := newTenant(t, s), newTenant(t, s)
	staff := n.directory(t, "Staff")
	jo := n.account(t, staff, "jo@example.test", directoryapi.Enabled)
	groups := map[string]id.ID{}
	for _, name := range []string{"Writers", "Admins", "Former"} {
		g := must(s.Directories.CreateGroup(t.Context(), directoryapi.CreateGroup{Tenant: n.id, ID: newID(),
			Directory: staff, Group: directoryapi.NewGroup{Name: field.Some(name)}}))(t)
		s.Directories.Join(t, n.ref(jo), g.ID)
		groups[name] = g.ID
	}
	s.Directories.DisableGroup(t, n.ref(groups["Former"]))
	whole, part, none := s.NewApplication(t, n.id), s.NewApplication(t, n.id), s.NewApplication(t, n.id)
	s.Map(t, n.id, whole, staff)
	s.AddGroup(n.ref(part), groups["Admins"])
	for application, want := range map[id.ID][]string{whole: {"Admins", "Writers"}, part: {"Admins"}, none: {}} {
		got, err := s.API.LoginContext(t.Context(), applicationapi.AskLoginContext{Tenant: n.id, Application: application,
			Account: jo})
		if err != nil || !slices.Equal(got.Groups, want) || got.Organization != nil {
			t.Errorf("the context is %+v, %v, want the groups %v", got, err, want)
		}
	}
	organization := s.NewOrganization(n.id, whole, "acme", staff)
	ask := applicationapi.AskLoginContext{Tenant: n.id, Application: whole, Account: jo, Organization: organization}
	got := must(s.API.LoginContext(t.Context(), ask))(t)
	if got.Organization == nil || got.Organization.ID != organization || got.Organization.NameKey != "acme" ||
		got.Organization.Name == "" {
		t.Errorf("the organization is %+v", got.Organization)
	}
	s.DeleteOrganization(n.ref(organization))
	if got := must(s.API.LoginContext(t.Context(), ask))(t); got.Organization != nil {
		t.Errorf("the organization that was deleted is %+v", got.Organization)
	}
	ask.Account = other.owner
	refuse(s.API.LoginContext(t.Context(), ask))(t, apierr.NotFound)
}
