package application_test

import (
	"testing"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/application"
	"github.com/doorward/doorward/services/application/applicationtest"
)

// newApplication makes an application without account stores.
func newApplication(t testing.TB, d *applicationtest.Deployment, tenant id.ID) id.ID {
	t.Helper()
	body := application.NewApplication{Name: field.Some("Shop " + d.NewID().String())}
	a, err := d.Service.CreateApplication(t.Context(), tenant, body, application.DirectoryToCreate{})
	if err != nil {
		t.Fatal(err)
	}
	return a.ID
}

// newMapping makes a directory the last account store of an application.
func newMapping(t testing.TB, d *applicationtest.Deployment, tenant, to, directory id.ID) id.ID {
	t.Helper()
	m, err := d.Service.CreateMapping(t.Context(), tenant, mappingBody(to, directory))
	if err != nil {
		t.Fatal(err)
	}
	return m.ID
}

// followLinks maps a directory as the default account store of an application, and enables the
// application's account linking policy.
func followLinks(t *testing.T, d *applicationtest.Deployment, tenant, to, directory id.ID) {
	t.Helper()
	body := mappingBody(to, directory)
	body.IsDefaultAccountStore = field.Some(true)
	if _, err := d.Service.CreateMapping(t.Context(), tenant, body); err != nil {
		t.Fatal(err)
	}
	a, err := d.Service.Application(t.Context(), id.Ref{Tenant: tenant, ID: to})
	if err != nil {
		t.Fatal(err)
	}
	policy := id.Ref{Tenant: tenant, ID: a.AccountLinkingPolicyID}
	if _, err := d.Service.UpdateLinkingPolicy(t.Context(), policy,
		application.LinkingPolicyChange{Status: field.Some("enabled")}); err != nil {
		t.Fatal(err)
	}
}

func mappingBody(to, directory id.ID) application.NewMapping {
	return application.NewMapping{Application: link("applications", to), AccountStore: link("directories", directory)}
}

// newOrganization makes an organization without account stores.
func newOrganization(t *testing.T, d *applicationtest.Deployment, tenant id.ID) id.ID {
	t.Helper()
	name := field.Some(d.NewID().String())
	o, err := d.Service.CreateOrganization(t.Context(), tenant, application.NewOrganization{Name: name, NameKey: name},
		application.DirectoryToCreate{})
	if err != nil {
		t.Fatal(err)
	}
	return o.ID
}

// mapOrganization makes an organization the last account store of an
// application.
func mapOrganization(t *testing.T, d *applicationtest.Deployment, tenant, to, organization id.ID) {
	t.Helper()
	body := application.NewMapping{Application: link("applications", to),
		AccountStore: link("organizations", organization)}
	if _, err := d.Service.CreateMapping(t.Context(), tenant, body); err != nil {
		t.Fatal(err)
	}
}

// mapToOrganization makes a directory the last account store of an organization.
func mapToOrganization(t *testing.T, d *applicationtest.Deployment, tenant, to, directory id.ID) {
	t.Helper()
	body := application.NewOrganizationMapping{Organization: link("organizations", to),
		AccountStore: link("directories", directory)}
	if _, err := d.Service.CreateOrganizationMapping(t.Context(), tenant, body); err != nil {
		t.Fatal(err)
	}
}

// attempt returns a login attempt of Jo, in the named store.
func attempt(where directoryapi.StoreName) application.LoginAttempt {
	in := application.LoginAttempt{Type: field.Some("basic"), Value: field.Some(secure.Secret("am86c2VjcmV0"))}
	if where != (directoryapi.StoreName{}) {
		in.AccountStore = field.Some(where)
	}
	return in
}

func link(kind string, v id.ID) field.Nullable[href.Link] {
	return field.Some(applicationtest.Base.Link(kind, v))
}
