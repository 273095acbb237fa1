package provider_test

import (
	"errors"
	"testing"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/services/directory"
	"github.com/doorward/doorward/services/directory/app"
	"github.com/doorward/doorward/services/directory/provider"
)

// bind restricts a mirror directory to the domains of a whitelist; without any, it lifts the
// restriction.
func bind(t *testing.T, svc *app.Service, tenant, at id.ID, domains ...string) {
	t.Helper()
	_, err := svc.UpdateCreationPolicy(t.Context(), id.Ref{Tenant: tenant, ID: at}, directory.CreationPolicyChange{
		EmailDomainWhitelist: field.Some(append([]string{}, domains...)),
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestAConnectionSpeaksForItsDomainsAlone(t *testing.T) {
	t.Parallel()
	svc, _, _, tenant := sealing(t)
	at := mirror(t, svc, tenant, "google", rule("work", "email"))
	login := func(what, external, email, userInfo string, want error) {
		t.Helper()
		_, err := svc.ProviderAccount(t.Context(), user(tenant, at, userInfo, func(in *directoryapi.ProviderUser) {
			in.ExternalID, in.Email = external, email
		}))
		if !errors.Is(err, want) {
			t.Errorf("%s: the login returned %v, want %v", what, err, want)
		}
	}
	bind(t, svc, tenant, at, "corp.test")
	login("a new user of the domain", "1", "jo@CORP.test", `{}`, nil)
	login("a new user of another", "2", "boss@cloud.test", `{}`, apierr.OutsideDomains)
	login("an address of another domain by a mapping rule", "3", "sam@corp.test", `{"work":"boss@cloud.test"}`,
		apierr.OutsideDomains)
	login("a user whose address moves to another domain", "1", "boss@cloud.test", `{}`, apierr.OutsideDomains)
	login("the user with the former address", "1", "jo@corp.test", `{}`, nil)
	bind(t, svc, tenant, at, "other.test")
	login("a user of a domain that was taken off the list", "1", "jo@corp.test", `{}`, apierr.OutsideDomains)
	bind(t, svc, tenant, at)
	login("a second user, while nothing is bound", "4", "sam@other.test", `{}`, nil)
	bind(t, svc, tenant, at, "other.test")
	login("an account that keeps its address because another has the new one", "1", "sam@other.test", `{}`,
		apierr.OutsideDomains)
	if _, err := svc.UpdateCreationPolicy(t.Context(), id.Ref{Tenant: tenant, ID: at}, directory.CreationPolicyChange{
		EmailDomainWhitelist: field.Some([]string{}), EmailDomainBlacklist: field.Some([]string{"cloud.test"}),
	}); err != nil {
		t.Fatal(err)
	}
	login("an address on the blacklist", "5", "boss@cloud.test", `{}`, apierr.OutsideDomains)
	login("one that is not on it", "5", "boss@elsewhere.test", `{}`, nil)
}

// An address outside the domains of a mirror leads to no account of another directory.
func TestAnAccountOutsideTheDomainsOfItsMirrorIsNotLinked(t *testing.T) {
	t.Parallel()
	svc, _, _, tenant := sealing(t)
	at := mirror(t, svc, tenant, "google")
	made, err := svc.ProviderAccount(t.Context(),
		user(tenant, at, `{}`, func(in *directoryapi.ProviderUser) { in.Email = "boss@cloud.test" }))
	if err != nil {
		t.Fatal(err)
	}
	home, err := svc.CreateDirectory(t.Context(),
		directoryapi.CreateDirectory{Tenant: tenant, ID: id.New(now()), Name: "Home"})
	if err != nil {
		t.Fatal(err)
	}
	boss, err := svc.CreateAccountIn(t.Context(), id.Ref{Tenant: tenant, ID: home.ID},
		directoryapi.CreateAccount{Account: directoryapi.NewAccount{
			Email: field.Some("boss@cloud.test"), Password: field.Some("Changeme1!"),
			EmailVerificationStatus: field.Some(directoryapi.Verified),
		}})
	if err != nil {
		t.Fatal(err)
	}
	bind(t, svc, tenant, at, "corp.test")
	out, err := svc.LinkedAccount(t.Context(),
		directoryapi.LinkedAccountRequest{Tenant: tenant, Account: made.Account.ID, ByEmail: true,
			Provision: true, Store: directoryapi.Store{Kind: directoryapi.Directories, ID: home.ID}})
	if err != nil || out.Outcome != directoryapi.Unchanged || out.Account.ID != made.Account.ID {
		t.Errorf("the login leads to %s, %s, %v", out.Account.Email, out.Outcome, err)
	}
	const base = "https://localhost:8443/v1/accounts/"
	link := provider.NewAccountLink{
		LeftAccount:  field.Some(href.Link{Href: base + made.Account.ID.String()}),
		RightAccount: field.Some(href.Link{Href: base + boss.ID.String()}),
	}
	if _, err := svc.CreateAccountLink(t.Context(), tenant, link); !errors.Is(err, apierr.OutsideDomains) {
		t.Errorf("a link by the API returned %v, want %v", err, apierr.OutsideDomains)
	}
	bind(t, svc, tenant, at, "cloud.test")
	if _, err := svc.CreateAccountLink(t.Context(), tenant, link); err != nil {
		t.Errorf("a link inside the domains returned %v", err)
	}
}
