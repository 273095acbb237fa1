package idsite_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/list"
	"github.com/doorward/doorward/services/idsite"
	"github.com/doorward/doorward/services/idsite/idsitetest"
	"github.com/doorward/doorward/services/idsite/store"
)

// The credential of a repository is sent to its server alone: it is neither returned nor in a message.
func TestTheCredentialOfARepositoryIsSealed(t *testing.T) {
	svc, _ := newService(t, idsitetest.New(now))
	site := newSite(t, svc)
	var sent atomic.Value
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		sent.Store(user + ":" + password)
		http.Error(w, "no access for jo with s3cr3t/x", http.StatusForbidden)
	}))
	t.Cleanup(server.Close)
	address := strings.Replace(server.URL, "://", "://jo:s3cr3t%2Fx@", 1) + "/pages.git"
	set, err := svc.UpdateSite(t.Context(), site, idsite.SiteChange{GitRepoURL: field.Some(address)})
	if err != nil {
		t.Fatal(err)
	}
	if u, err := url.Parse(*set.GitRepoURL); err != nil || u.User.String() != url.User(idsite.SealedKey).String() {
		t.Errorf("the address is returned as %s", *set.GitRepoURL)
	}
	if _, err := svc.UpdateSite(t.Context(), site, idsite.SiteChange{GitRepoURL: field.Some(*set.GitRepoURL)}); err != nil {
		t.Errorf("the address that was returned is answered %v", err)
	}
	elsewhere := strings.Replace(*set.GitRepoURL, "127.0.0.1", "localhost", 1)
	if _, err := svc.UpdateSite(t.Context(), site, idsite.SiteChange{GitRepoURL: field.Some(elsewhere)}); err == nil {
		t.Error("the credential can be sent to another server")
	}
	if err := fetchLocally(t, svc).FetchDue(t.Context()); err != nil {
		t.Fatal(err)
	}
	if sent.Load() != "jo:s3cr3t/x" {
		t.Errorf("the server gets the credential %v", sent.Load())
	}
	got, err := svc.Site(t.Context(), site)
	if err != nil || got.GitStatus != store.GitFailed || got.GitMessage == nil || strings.Contains(*got.GitMessage, "s3cr3t") || got.GitFailures != 1 {
		t.Errorf("after the fetch the settings are %+v, %v", got, err)
	}
}

// The repositories of tenants whose servers hang hold up those of nobody else.
func TestASlowServerHoldsUpNoOtherTenant(t *testing.T) {
	svc, _ := newService(t, idsitetest.New(now))
	set := func(at id.Ref, address string) {
		t.Helper()
		if _, err := svc.UpdateSite(t.Context(), at, idsite.SiteChange{GitRepoURL: field.Some(address), GitBranch: field.Some("main")}); err != nil {
			t.Fatal(err)
		}
	}
	honest := siteOfKey(t, svc, "2EXAMPLE0KEY0ID00000000000")
	address, _ := repository(t, "main", map[string]string{"index.html": "<p>one</p>"})
	set(honest, address)
	fetcher := fetchLocally(t, svc)
	if err := fetcher.FetchDue(t.Context()); err != nil {
		t.Fatal(err)
	}
	hangs, end := make(chan struct{}, 8), make(chan struct{})
	for _, key := range []string{"2EXAMPLE0KEY0ID00000000001", "2EXAMPLE0KEY0ID00000000002", "2EXAMPLE0KEY0ID00000000003"} {
		server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			hangs <- struct{}{}
			<-end
		}))
		t.Cleanup(server.Close)
		set(siteOfKey(t, svc, key), server.URL+"/pages.git")
	}
	set(honest, address) // due after the others: it was fetched before
	done := make(chan error, 1)
	go func() { done <- fetcher.FetchDue(t.Context()) }()
	for range 3 {
		<-hangs
	}
	for {
		site, err := svc.Site(t.Context(), honest)
		if err != nil {
			t.Fatal(err)
		}
		if site.GitStatus == store.GitOK {
			break
		}
	}
	close(end)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

// siteOfKey returns the site of a new tenant, whose first API key has an id.
func siteOfKey(t *testing.T, svc *idsite.Service, key string) id.Ref {
	t.Helper()
	made, err := svc.SignUpFirstTenant(t.Context(), idsite.Bootstrap{KeyID: key, KeySecret: "secret", OwnerEmail: "owner@example.test"})
	if err != nil {
		t.Fatal(err)
	}
	sites, err := svc.ListSites(t.Context(), id.Ref{Tenant: made.ID, ID: made.ID}, list.First())
	if err != nil {
		t.Fatal(err)
	}
	return id.Ref{Tenant: made.ID, ID: sites.Items[0].ID}
}
