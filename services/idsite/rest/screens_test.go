package rest_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/services/application"
	idsiterest "github.com/doorward/doorward/services/idsite/rest"
	"github.com/doorward/doorward/services/idsite/screens"
	"github.com/doorward/doorward/services/idsite/store"
)

func TestFilesOfPagesAreCompressedAndNotFramed(t *testing.T) {
	c := newClient(t)
	tenant, site := c.tenant(t, "mine")
	_, settings := c.update(t, tenant, site, `{}`)
	ask := func(path string, header http.Header) (http.Header, []byte) {
		t.Helper()
		request := httptest.NewRequest(http.MethodGet, "/site"+path, nil)
		request.Header = header.Clone()
		request.Header.Set(idsiterest.HostHeader, settings["domainName"].(string))
		request.Header.Set(caller.Header, c.signer.Sign(caller.Caller{}))
		answer, err := c.app.Test(request, -1)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = answer.Body.Close() }()
		body, err := io.ReadAll(answer.Body)
		if err != nil || answer.StatusCode != http.StatusOK {
			t.Fatalf("%s answers %d, %v", path, answer.StatusCode, err)
		}
		return answer.Header, body
	}
	_, index := ask("/", http.Header{})
	module := string(regexp.MustCompile(`/static/[^"]+/app\.js`).Find(index))
	for path, caching := range map[string]string{"/": "no-store", module: "public, max-age=31536000, immutable"} {
		_, plain := ask(path, http.Header{})
		header, zipped := ask(path, http.Header{"Accept-Encoding": {"gzip, deflate, br"}})
		for name, want := range map[string]string{
			"Content-Security-Policy": "frame-ancestors 'none'", "X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer",
			"X-Content-Type-Options": "nosniff", "Cross-Origin-Opener-Policy": "same-origin",
		} {
			if got := header.Get(name); !strings.Contains(got, want) {
				t.Errorf("%s has %s %q", path, name, got)
			}
		}
		if header.Get("Content-Encoding") != "gzip" || header.Get("Cache-Control") != caching {
			t.Errorf("%s has the headers %v", path, header)
		}
		if !regexp.MustCompile(`\bAccept-Encoding\b`).MatchString(header.Get("Vary")) {
			t.Errorf("%s varies by %q", path, header.Get("Vary"))
		}
		reader, err := gzip.NewReader(bytes.NewReader(zipped))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(reader); err != nil || !bytes.Equal(got, plain) {
			t.Errorf("%s is something else when it is compressed: %v", path, err)
		}
	}
}

// A page whose browser has no login here knows the domain alone. It leads to the applications of the tenant that say
// where they are.
func TestThePagesKnowTheHomesOfTheirTenant(t *testing.T) {
	c := newClient(t)
	tenant, site := c.tenant(t, "mine")
	theirs, _ := c.tenant(t, "theirs")
	_, settings := c.update(t, tenant, site, `{}`)
	domain := settings["domainName"].(string)
	homes := func() string {
		t.Helper()
		answer, body := c.send(t, http.MethodGet, "/site/homes.json", "", "", idsiterest.HostHeader, domain)
		if answer.StatusCode != http.StatusOK || answer.Header.Get("Cache-Control") != "public, max-age=60" {
			t.Errorf("the homes are answered %d %v", answer.StatusCode, answer.Header)
		}
		return body
	}
	if got := homes(); got != `{"items":[]}` {
		t.Errorf("without any the homes are %s", got)
	}
	addresses := map[id.ID]string{tenant: "https://shop.example.test/start", theirs: "https://other.example.test/"}
	for of, address := range addresses {
		at := id.Ref{Tenant: of, ID: c.peers.Applications.NewApplication(of)}
		c.peers.Applications.Change(at, application.NewApplication{Name: field.Some("Shop"), HomeURL: field.Some(address)})
	}
	if got := homes(); got != `{"items":[{"name":"Shop","homeUrl":"https://shop.example.test/start"}]}` {
		t.Errorf("the homes are %s", got)
	}
	if policy := screens.Policy("https://api.test"); !strings.Contains(policy, "connect-src 'self' https://api.test;") {
		t.Errorf("the pages may not read them: %s", policy)
	}
}

// A script of custom pages may read the path (the routes of a single-page application): a path without an extension
// is the first page, and a file that is missing is not.
func TestCustomPagesHaveRoutesOfTheirOwn(t *testing.T) {
	c := newClient(t)
	tenant, site := c.tenant(t, "mine")
	_, settings := c.update(t, tenant, site, `{"gitRepoUrl":"https://git.example.test/pages.git"}`)
	domain := settings["domainName"].(string)
	const index = "<h1>Ours</h1>"
	want := map[string]string{
		"/": index, "/index.html": index,
		"/register": index, "/register/": index, "/mfa/setup/sms": index, "/v1.2/start": index,
		"/help": "<h1>Help</h1>", "/help/": "<h1>Help</h1>", "/app.js": "start()",
		"/none.js": "", "/help/none.html": "", "/register.php": "", "/.env": "",
	}
	check := func() {
		t.Helper()
		for path, text := range want {
			answer, body := c.send(t, http.MethodGet, "/site"+path, "", "", idsiterest.HostHeader, domain)
			status := http.StatusOK
			if text == "" {
				status = http.StatusNotFound
			}
			if answer.StatusCode != status || text != "" && body != text {
				t.Errorf("%s answers %d %q, want %q", path, answer.StatusCode, body, text)
			}
		}
	}
	files := []store.File{
		{Path: "index.html", Content: []byte(index)}, {Path: "help/index.html", Content: []byte("<h1>Help</h1>")},
		{Path: "app.js", Content: []byte("start()")},
	}
	replace := func(files []store.File) {
		t.Helper()
		err := c.data.Tx(t.Context(), func(tx *store.Tx) error { return tx.ReplaceFiles(t.Context(), tenant, files) })
		if err != nil {
			t.Fatal(err)
		}
	}
	replace(files)
	check()
	replace(files[1:]) // without a first page of its own it has no routes
	want = map[string]string{"/register": "", "/help": "<h1>Help</h1>", "/app.js": "start()"}
	check()
}
