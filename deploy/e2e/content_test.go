package e2e_test

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/doorward/doorward/deploy/e2e"
)

// The names of the resources of every new tenant.
const (
	console        = "Service"
	administrators = "Service Administrators"
	firstApp       = "My Application"
	firstDirectory = "My Application Directory"
)

func del(address string) e2e.Request { return e2e.Request{Method: http.MethodDelete, URL: address} }

func TestATenantIsBornWithItsFirstContent(t *testing.T) {
	tenant := client.Tenant(t)
	applications := client.All(t, tenant.Link(t, "applications"))
	directories := client.All(t, tenant.Link(t, "directories"))

	t.Run("the console application cannot be deleted", func(t *testing.T) {
		builtIn := e2e.Named(t, applications, console)
		client.Refused(t, http.StatusBadRequest, 400, del(builtIn.Href()))
		client.Get(t, builtIn.Href())
	})
	t.Run("the administrators directory cannot be deleted", func(t *testing.T) {
		builtIn := e2e.Named(t, directories, administrators)
		client.Refused(t, http.StatusBadRequest, 400, del(builtIn.Href()))
		client.Get(t, builtIn.Href())
	})
	t.Run("the owner lives in the administrators directory and stays", func(t *testing.T) {
		builtIn := e2e.Named(t, directories, administrators)
		owners := client.All(t, builtIn.Link(t, "accounts"))
		if len(owners) != 1 {
			t.Fatalf("the administrators directory has %d accounts, want the owner alone", len(owners))
		}
		client.Refused(t, http.StatusBadRequest, 4001, del(owners[0].Href()))
		client.Refused(t, http.StatusBadRequest, 4002, post(owners[0].Href(), e2e.Object{"status": "DISABLED"}))
		if status := client.Get(t, owners[0].Href()).Text("status"); status != "ENABLED" {
			t.Errorf("the owner is %s", status)
		}
	})
	t.Run("the first application keeps accounts and groups in the first directory", func(t *testing.T) {
		application := e2e.Named(t, applications, firstApp)
		directory := e2e.Named(t, directories, firstDirectory)
		for _, link := range []string{"defaultAccountStoreMapping", "defaultGroupStoreMapping"} {
			mapping := client.Get(t, application.Link(t, link))
			if store := mapping.Link(t, "accountStore"); store != directory.Href() {
				t.Errorf("%s leads to %s, want %s", link, store, directory.Href())
			}
			if mapping["isDefaultAccountStore"] != true || mapping["isDefaultGroupStore"] != true {
				t.Errorf("the mapping is not the default of both kinds: %v", mapping)
			}
			if owner := mapping.Link(t, "application"); owner != application.Href() {
				t.Errorf("the mapping belongs to %s", owner)
			}
		}
	})
	t.Run("there is one ID site", func(t *testing.T) {
		sites := client.All(t, tenant.Link(t, "idSites"))
		if len(sites) != 1 {
			t.Fatalf("the tenant has %d ID sites", len(sites))
		}
		if site := client.Get(t, sites[0].Href()); site.Link(t, "tenant") != tenant.Href() {
			t.Errorf("the ID site belongs to %s", site.Link(t, "tenant"))
		}
	})
}

// The deletion of a directory deletes everything about its accounts in every service.
func TestADeletedDirectoryTakesAllOfItsAccountsWithIt(t *testing.T) {
	fixture := client.NewFixture(t)
	account := client.Register(t, fixture.Application.Link(t, "accounts"))
	key := client.Create(t, account.Link(t, "apiKeys"), e2e.Object{})
	factor := client.Create(t, account.Link(t, "factors"), e2e.Object{"type": "google-authenticator"})
	token := client.Token(t, fixture.Application.Href(), url.Values{"grant_type": {"password"}, "username": {account.Text("email")}, "password": {e2e.Password}})
	refresh := client.Get(t, account.Link(t, "refreshTokens")).Items(t)[0]

	client.Delete(t, fixture.Directory.Href())
	client.NotFound(t, account.Href())
	mapping := fixture.Application.Link(t, "defaultAccountStoreMapping")
	for _, address := range []string{mapping, key.Href(), factor.Href(), token.Text("service_access_token_href"), refresh.Href()} {
		awaitNotFound(t, address)
	}
	if application := client.Get(t, fixture.Application.Href()); application["defaultAccountStoreMapping"] != nil {
		t.Errorf("the application's default store is gone: %v", application)
	}
}
