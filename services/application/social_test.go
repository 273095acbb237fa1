package application_test

import (
	"errors"
	"testing"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/services/application"
	"github.com/doorward/doorward/services/application/applicationtest"
	"github.com/doorward/doorward/services/directory/directorytest"
)

func TestTheDirectoryOfASocialProvider(t *testing.T) {
	t.Parallel()
	d := applicationtest.Open(t)
	tenant, _ := d.Tenant(t)
	social := func(name, provider string) id.ID { return d.Directories.NewMirror(t, tenant, name, provider) }
	shop, bare := newApplication(t, d, tenant), newApplication(t, d, tenant)
	cloud, corporate, web, theirs := d.Directory(t, tenant, "Cloud"), d.Directory(t, tenant, "Corporate"),
		social("Web", "google"), social("Theirs", "github")
	d.Directories.Mirror(t, directoryapi.Ref{Tenant: tenant, ID: corporate}, "saml")
	for _, directory := range []id.ID{cloud, corporate, web} {
		newMapping(t, d, tenant, shop, directory)
	}
	organization := newOrganization(t, d, tenant)
	mapOrganization(t, d, tenant, shop, organization)
	mapToOrganization(t, d, tenant, organization, theirs)
	other, _ := d.Tenant(t)

	for name, c := range map[string]struct {
		tenant, application id.ID
		provider            string
		store               href.Link
		directory           id.ID
		want                error
	}{
		"of the application": {tenant, shop, "google", href.Link{}, web, nil},
		"in any letters":     {tenant, shop, "Google", href.Link{}, web, nil},
		"of an organization": {tenant, shop, "github", href.Link{}, theirs, nil},
		"of the organization that is named": {tenant, shop, "github",
			applicationtest.Base.Link("organizations", organization), theirs, nil},
		"not of it": {tenant, shop, "google", applicationtest.Base.Link("organizations", organization),
			id.ID{}, apierr.OrgDirectoryTypeUnmapped},
		"of none":                          {tenant, shop, "facebook", href.Link{}, id.ID{}, apierr.DirectoryTypeUnavailable},
		"of a provider that is not social": {tenant, shop, "saml", href.Link{}, id.ID{}, apierr.DirectoryTypeUnavailable},
		"of cloud directories":             {tenant, shop, "native", href.Link{}, id.ID{}, apierr.DirectoryTypeUnavailable},
		"of no name":                       {tenant, shop, "", href.Link{}, id.ID{}, apierr.DirectoryTypeUnavailable},
		"of an application without stores": {tenant, bare, "google", href.Link{}, id.ID{}, apierr.DirectoryTypeUnavailable},
		"of another tenant":                {other, shop, "google", href.Link{}, id.ID{}, apierr.NotFound},
		"in a store that is not mapped": {tenant, shop, "google", applicationtest.Base.Link("directories", theirs),
			id.ID{}, apierr.NotMapped},
		"in a store that never was": {tenant, shop, "google", applicationtest.Base.Link("directories", shop), id.ID{},
			apierr.Reference},
	} {
		t.Run(name, func(t *testing.T) {
			found, err := d.Service.ProviderLogin(t.Context(),
				applicationapi.ProviderLogin{Tenant: c.tenant, Application: c.application,
					Login: directoryapi.SocialLogin{Provider: c.provider, AccountStore: c.store.Href,
						Code: directorytest.UserCode("1", "jo@example.test")}})
			if !errors.Is(err, c.want) || found.Account.DirectoryID != c.directory {
				t.Errorf("the directory of the login is %v, %v; want %v, %v", found.Account.DirectoryID, err, c.directory, c.want)
			}
		})
	}
}

// The access of an account whose login named an organization ends with that of the organization,
// though the account is in another store of the application.
func TestTheStandingOfALoginToAnOrganization(t *testing.T) {
	t.Parallel()
	d := applicationtest.Open(t)
	tenant, _ := d.Tenant(t)
	shop, directory := newApplication(t, d, tenant), d.Directory(t, tenant, "Staff")
	account := d.Account(t, tenant, directory, "jo@example.test")
	newMapping(t, d, tenant, shop, directory)
	organization, unmapped := newOrganization(t, d, tenant), newOrganization(t, d, tenant)
	mapOrganization(t, d, tenant, shop, organization)
	mapToOrganization(t, d, tenant, organization, directory)
	stands := func(organization id.ID, want error) {
		t.Helper()
		_, err := d.Service.CheckAccess(t.Context(),
			applicationapi.CheckAccess{Tenant: tenant, Application: shop, Account: account, Organization: organization})
		if !errors.Is(err, want) {
			t.Errorf("the access check returns %v, want %v", err, want)
		}
	}
	stands(organization, nil)
	stands(unmapped, apierr.TokenAccountUnreachable)
	stands(directory, apierr.TokenAccountUnreachable)
	left := newOrganization(t, d, tenant) // the account is in none of its stores, as after it has left
	mapOrganization(t, d, tenant, shop, left)
	stands(left, apierr.TokenAccountUnreachable)
	mapToOrganization(t, d, tenant, left, d.Directory(t, tenant, "Others"))
	stands(left, apierr.TokenAccountUnreachable)
	at := id.Ref{Tenant: tenant, ID: organization}
	if _, err := d.Service.UpdateOrganization(t.Context(), at,
		application.NewOrganization{Status: field.Some(directoryapi.Disabled)}); err != nil {
		t.Fatal(err)
	}
	stands(organization, apierr.TokenStoreDisabled)
	stands(id.ID{}, nil)
	if err := d.Service.DeleteOrganization(t.Context(), at); err != nil {
		t.Fatal(err)
	}
	stands(organization, apierr.TokenAccountUnreachable)
	stands(id.ID{}, nil)
}
