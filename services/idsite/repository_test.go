package idsite_test

import (
	"maps"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing/transport/client"

	"github.com/doorward/doorward/pkg/clocktest"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/outbound"
	"github.com/doorward/doorward/services/idsite"
	"github.com/doorward/doorward/services/idsite/idsitetest"
	"github.com/doorward/doorward/services/idsite/store"
)

// repository serves a git repository over HTTP.
func repository(t *testing.T, branch string, files map[string]string) (url string, commit func(map[string]string)) {
	t.Helper()
	home := t.TempDir()
	work := filepath.Join(home, "pages.git")
	run := func(arguments ...string) string {
		command := exec.CommandContext(t.Context(), "git", append([]string{"-C", work, "-c", "user.name=Jo", "-c", "user.email=jo@example.test"}, arguments...)...)
		out, err := command.CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v: %s", arguments, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	if err := os.MkdirAll(work, 0o755); err != nil {
		t.Fatal(err)
	}
	run("init", "-q", "-b", branch)
	commit = func(files map[string]string) {
		for name, text := range files {
			path := filepath.Join(work, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if target, link := strings.CutPrefix(text, "-> "); link {
				if err := os.Symlink(target, path); err != nil {
					t.Fatal(err)
				}
			} else if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		run("add", "-A")
		run("commit", "-q", "-m", "pages")
	}
	commit(files)
	backend := filepath.Join(run("--exec-path"), "git-http-backend")
	server := httptest.NewServer(&cgi.Handler{Path: backend, Env: []string{"GIT_PROJECT_ROOT=" + home, "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*"}})
	t.Cleanup(server.Close)
	return server.URL + "/pages.git", commit
}

// newSite returns the site of a new tenant.
func newSite(t *testing.T, svc *idsite.Service) id.Ref {
	t.Helper()
	return siteOfKey(t, svc, "2EXAMPLE0KEY0ID00000000000")
}

// fetchLocally returns what fetches repositories of this machine.
func fetchLocally(t *testing.T, svc *idsite.Service) *idsite.Repositories {
	t.Helper()
	loopback, err := outbound.ParseGuard([]string{"127.0.0.0/8"})
	if err != nil {
		t.Fatal(err)
	}
	return idsite.NewRepositories(svc, loopback)
}

func TestCustomPagesComeFromARepository(t *testing.T) {
	svc, _ := newService(t, idsitetest.New(t, &clocktest.Clock{}))
	at := newSite(t, svc)
	address, commit := repository(t, "pages", map[string]string{
		"index.html": "<p>one</p>", "js/app.js": "1", ".secret": "x", "link.txt": "-> /etc/passwd",
	})
	status := func() store.Site {
		t.Helper()
		site, err := svc.Site(t.Context(), at)
		if err != nil {
			t.Fatal(err)
		}
		return site
	}
	file := func(path string) string {
		found, err := svc.SiteFile(t.Context(), at.Tenant, path)
		if err != nil {
			return ""
		}
		return string(found.Content)
	}
	set := func(in idsite.SiteChange) {
		t.Helper()
		if _, err := svc.UpdateSite(t.Context(), at, in); err != nil {
			t.Fatal(err)
		}
	}
	set(idsite.SiteChange{GitRepoURL: field.Some(address), GitBranch: field.Some("pages")})
	if got := status().GitStatus; got != store.GitPending {
		t.Errorf("before the fetch the status is %s", got)
	}
	t.Run("nothing but HTTP is spoken", func(t *testing.T) {
		idsite.NewRepositories(svc, outbound.Guard{})
		if spoken := slices.Sorted(maps.Keys(client.Protocols)); !slices.Equal(spoken, []string{"http", "https"}) {
			t.Errorf("it is %v", spoken)
		}
	})
	t.Run("a private address is refused", func(t *testing.T) {
		if err := idsite.NewRepositories(svc, outbound.Guard{}).FetchDue(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := status(); got.GitStatus != store.GitFailed || got.GitMessage == nil || !strings.Contains(*got.GitMessage, "private network") {
			t.Errorf("the status is %s, %v", got.GitStatus, got.GitMessage)
		}
	})
	set(idsite.SiteChange{GitBranch: field.Some("pages")})
	fetcher := fetchLocally(t, svc)
	if err := fetcher.FetchDue(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := status(); got.GitStatus != store.GitOK {
		t.Fatalf("the status is %s, %v", got.GitStatus, got.GitMessage)
	}
	if file("index.html") != "<p>one</p>" || file("js/app.js") != "1" {
		t.Error("the files are not those of the branch")
	}
	for _, kept := range []string{".secret", "link.txt", "../index.html"} {
		if file(kept) != "" {
			t.Errorf("%s is served", kept)
		}
	}
	t.Run("another branch that is not there keeps the pages", func(t *testing.T) {
		set(idsite.SiteChange{GitBranch: field.Some("nothing")})
		if err := fetcher.FetchDue(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := status(); got.GitStatus != store.GitFailed || file("index.html") == "" {
			t.Errorf("the status is %s, the page %q", got.GitStatus, file("index.html"))
		}
	})
	t.Run("a change of the settings fetches again", func(t *testing.T) {
		commit(map[string]string{"index.html": "<p>two</p>"})
		set(idsite.SiteChange{GitBranch: field.Some("pages")})
		if err := fetcher.FetchDue(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := file("index.html"); got != "<p>two</p>" {
			t.Errorf("the page is %q", got)
		}
	})
}
