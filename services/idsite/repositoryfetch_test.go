package idsite_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/clocktest"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/list"
	"github.com/doorward/doorward/services/idsite"
	"github.com/doorward/doorward/services/idsite/idsitetest"
	"github.com/doorward/doorward/services/idsite/store"
)

// The credential of a repository is sent to its server alone: it is neither returned nor in a message.
func TestTheCredentialOfARepositoryIsSealed(t *testing.T) {
	svc, _ := newService(t, idsitetest.New(t, &clocktest.Clock{}))
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
	svc, _ := newService(t, idsitetest.New(t, &clocktest.Clock{}))
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

// hangingServer serves repositories that it never sends, until the channel is closed. It returns the paths
// that were asked for.
func hangingServer(t *testing.T, end <-chan struct{}) (address string, asked <-chan string) {
	t.Helper()
	paths := make(chan string, 100)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		paths <- r.URL.Path
		<-end
		http.Error(w, "gone", http.StatusGone)
	}))
	t.Cleanup(server.Close)
	return server.URL, paths
}

// fetches is a service with a clock, and what fetches its repositories.
type fetches struct {
	*testing.T
	*login
	fetcher *idsite.Repositories
	end     chan struct{} // closed: the servers that hang answer
}

func newFetches(t *testing.T) *fetches {
	t.Helper()
	l := newLogin(t)
	return &fetches{T: t, login: l, fetcher: fetchLocally(t, l.Service), end: make(chan struct{})}
}

// site returns the site of a new tenant, whose repository is at an address.
func (f *fetches) site(n int, address string) id.Ref {
	f.Helper()
	at := siteOfKey(f.T, f.Service, fmt.Sprintf("2EXAMPLE0KEY0ID000000001%02d", n))
	f.set(at, address)
	return at
}

func (f *fetches) set(at id.Ref, address string) {
	f.Helper()
	if _, err := f.UpdateSite(f.Context(), at, idsite.SiteChange{GitRepoURL: field.Some(address)}); err != nil {
		f.Fatal(err)
	}
}

// wantStarted checks how many fetches of those that are due are started now.
func (f *fetches) wantStarted(what string, want int) {
	f.Helper()
	if started, err := f.fetcher.StartDue(f.Context()); err != nil || started != want {
		f.Errorf("%s: %d fetches are started, %v, want %d", what, started, err, want)
	}
}

// finish lets the servers answer, and waits for the fetches.
func (f *fetches) finish() {
	f.Helper()
	close(f.end)
	f.fetcher.Wait()
	f.end = make(chan struct{})
}

func TestEightRepositoriesAreFetchedAtATime(t *testing.T) {
	f := newFetches(t)
	for n := range 10 {
		address, _ := hangingServer(t, f.end)
		f.site(n, address+"/pages.git")
	}
	f.wantStarted("ten are due", 8)
	f.wantStarted("while they hang", 0)
	f.finish()
	f.wantStarted("after them", 2)
	f.finish()
	f.wantStarted("at last", 0)
}

func TestOneRepositoryOfAServerIsFetchedAtATime(t *testing.T) {
	f := newFetches(t)
	address, _ := hangingServer(t, f.end)
	f.site(1, address+"/one.git")
	f.site(2, address+"/two.git")
	f.wantStarted("two are due", 1)
	f.wantStarted("while one hangs", 0)
	f.finish()
	f.wantStarted("after it", 1)
	f.finish()
}

// A tenant that changes its settings while its server hangs does not get a second fetch, and is behind the
// others afterwards.
func TestOneRepositoryOfATenantIsFetchedAtATime(t *testing.T) {
	f := newFetches(t)
	first, _ := hangingServer(t, f.end)
	second, asked := hangingServer(t, f.end)
	at := f.site(1, first+"/pages.git")
	f.wantStarted("one is due", 1)
	f.set(at, second+"/pages.git")
	f.wantStarted("another while it hangs", 0)
	f.finish()
	f.site(2, second+"/other.git")
	f.wantStarted("two of one server", 1)
	if path := <-asked; !strings.HasPrefix(path, "/other.git/") {
		t.Errorf("%s comes before the repository of a tenant without a failure", path)
	}
	f.finish()
}

// A fetch that fails is repeated after 10, 20, 40 minutes and so on, at most after 640, and after a success
// again after 10 (docs/interface/id-site.md).
func TestAFetchThatFailsIsRepeatedWithABackOff(t *testing.T) {
	f := newFetches(t)
	var good atomic.Pointer[url.URL]
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if to := good.Load(); to != nil {
			httputil.NewSingleHostReverseProxy(to).ServeHTTP(w, r)
			return
		}
		http.Error(w, "gone", http.StatusGone)
	}))
	t.Cleanup(server.Close)
	address, _ := repository(t, "master", map[string]string{"index.html": "<p>one</p>"})
	at := f.site(1, server.URL+"/pages.git")
	f.wantStarted("at first", 1)
	f.fetcher.Wait()
	wantAfter := func(minutes time.Duration) {
		t.Helper()
		f.clock.Move(minutes * time.Minute)
		f.wantStarted(fmt.Sprint("within ", int(minutes), " minutes"), 0)
		f.clock.Move(time.Second)
		f.wantStarted(fmt.Sprint("after ", int(minutes), " minutes"), 1)
		f.fetcher.Wait()
	}
	for _, minutes := range []time.Duration{10, 20, 40, 80, 160, 320, 640, 640} {
		wantAfter(minutes)
	}
	to, err := url.Parse(strings.TrimSuffix(address, "/pages.git"))
	if err != nil {
		t.Fatal(err)
	}
	good.Store(to)
	f.set(at, server.URL+"/pages.git")
	f.wantStarted("after a change of the settings", 1)
	f.fetcher.Wait()
	if site, err := f.Site(t.Context(), at); err != nil || site.GitStatus != store.GitOK || site.GitFailures != 0 {
		t.Fatalf("the fetch was %s after %d failures, %v: %v", site.GitStatus, site.GitFailures, site.GitMessage, err)
	}
	wantAfter(10)
}

// A server that sends a byte a second ends its fetch long before the time-out, and the message says why.
func TestAServerThatSendsAByteASecondIsLeft(t *testing.T) {
	f := newFetches(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/x-git-upload-pack-advertisement")
		for _, b := range []byte("fff0" + strings.Repeat("#", 65516)) { // more than one read of the client takes
			f.clock.Move(time.Second)
			if _, err := w.Write([]byte{b}); err != nil || http.NewResponseController(w).Flush() != nil {
				return
			}
		}
	}))
	t.Cleanup(server.Close)
	at := f.site(1, server.URL+"/pages.git")
	if err := f.fetcher.FetchDue(t.Context()); err != nil {
		t.Fatal(err)
	}
	site, err := f.Site(t.Context(), at)
	if err != nil || site.GitStatus != store.GitFailed || site.GitMessage == nil ||
		!strings.Contains(*site.GitMessage, "less than 1024 bytes in a second") {
		t.Errorf("the fetch was %s, %v, %v", site.GitStatus, *site.GitMessage, err)
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
