package redirecturi

import (
	"errors"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
)

func TestCallbackURIs(t *testing.T) {
	t.Parallel()
	good := []string{
		"https://app.localhost/cb", "http://localhost:3000/cb", "https://app.example.test", "https://app.example.test/", "https://app.example.test/cb?from=login",
		"https://*.shop.example.test/cb", "https://*.localhost:8443/cb", "https://xn--bcher-kva.example/cb", "https://my_host.example.test/a%20b",
		"HTTPS://App.Example.Test/CB", "http://127.0.0.1:8080/cb", "http://[::1]:8080/cb",
		"myapp://serviceCallback", "com.example.app:/oauth", "com.example.app://host.example/path", "myapp:///cb",
	}
	bad := []string{
		"", " ", "/cb", "cb", "//app.example.test/cb", "app.example.test/cb", "https:", "https://", "https:///cb", "https:app.example.test",
		"https://user@app.example.test/cb", "https://app.example.test@evil.example/cb", "https://:secret@app.example.test/cb",
		"https://app.example.test/cb#part", "https://app.example.test/cb#", `https://app.example.test\@evil.example`, `https:\\app.example.test`,
		"https://*", "https://*/cb", "https://*.*.example.test/cb", "https://app*.example.test/cb", "https://app.*.test/cb", "https://*app.example.test",
		"https://*.example.test/*", "https://app.example.test/*", "https://app.example.test:*/cb", "*://app.example.test/cb", "https://app.example.test/cb?next=*",
		"https://*.127.0.0.1/cb", "https://*.1/cb", "https://[*]/cb", "myapp://*.example.test/cb", "myapp:/*",
		"https://app.example.test./cb", "https://.example.test", "https://app..example.test", "https://-/ ", "https://app.example.test:0/", "https://app.example.test:65536/",
		"https://app.example.test:/cb", "https://app.example.test:80a/cb", "https://1.2.3/cb", "https://256.1.1.1/cb", "https://0x7f.1/cb", "https://[::1/cb", "https://[fe80::1%25eth0]/cb",
		"https://bücher.example/cb", "https://app.example.test/ü", "https://app.example.test/a b", "https://app.example.test/\n", "https://app.example.test/\x00", "https://app.example.test/%zz",
		"https://%61pp.example.test/cb", "https://app.example.test%2f.evil.example/", "https://" + strings.Repeat("x", 64) + ".test/",
		"javascript:alert(1)", "javascript://app.example.test/%0aalert(1)", "JavaScript:/x", "data:text/html,x", "data:/x", "file:///etc/passwd", "blob:/x", "about:/blank", "view-source:/x", "vbscript:/x",
		"mailto:jo@example.test", "urn:example:cb", "myapp:cb", "1app:/cb", "https://" + strings.Repeat("abc.", 70) + "test/",
	}
	for _, uri := range good {
		if list, err := Callbacks(field.Some([]string{uri}), "uris", nil); err != nil || !slices.Equal(list, []string{uri}) {
			t.Errorf("%q returned %q, %v", uri, list, err)
		}
	}
	for _, uri := range bad {
		if _, err := Callbacks(field.Some([]string{good[0], uri}), "uris", nil); !errors.Is(err, apierr.Format) {
			t.Errorf("%q returned %v", uri, err)
		}
	}
}

// A home is led to by a button of a page: no script, and nothing that is not encrypted on the way.
func TestHomesOfApplications(t *testing.T) {
	t.Parallel()
	for home, want := range map[string]bool{
		"https://app.example.test": true, "https://app.example.test/start?from=mail": true, "http://localhost:3000/": true, "http://127.0.0.1:80": true,
		"http://[::1]:3000/": true, "http://shop.localhost/": true, "http://app.example.test/": false, "http://localhost.evil.test/": false, "": false,
		"javascript:alert(1)": false, "myapp://start": false, "https://*.example.test/": false, "https://a@app.example.test/": false, "//app.example.test": false,
	} {
		if err := CheckHome(home, "homeUrl"); (err == nil) != want || err != nil && !errors.Is(err, apierr.Format) {
			t.Errorf("the home %q returned %v, want it taken: %v", home, err, want)
		}
	}
	for want, callbacks := range map[string][]string{
		"https://app.example.test:8443/": {"https://*.example.test/cb", "https://app.example.test:8443/cb?x=1", "https://other.test/cb"},
		"http://localhost:3000/":         {"http://localhost:3000/cb"},
		"":                               {"myapp://serviceCallback", "https://other.test/cb"},
	} {
		if got := DefaultOrigin(callbacks); got != want {
			t.Errorf("the origin of the default of %q is %q, want %q", callbacks, got, want)
		}
	}
	if got := DefaultOrigin([]string{"http://app.example.test/cb"}) + DefaultOrigin(nil); got != "" {
		t.Errorf("a callback that is not encrypted, or none, has the origin %q", got)
	}
}

func TestOriginURIs(t *testing.T) {
	t.Parallel()
	good := []string{"https://app.example.test", "http://localhost:3000", "https://*.apps.localhost", "https://*.apps.localhost:8443", "http://127.0.0.1:8080", "http://[::1]:8080", "ionic://localhost"}
	bad := []string{"", "*", "null", "https://app.example.test/", "https://app.example.test/cb", "https://app.example.test?", "https://app.example.test?x=1", "https://app.example.test#",
		"https://user@app.example.test", "app.example.test", "//app.example.test", "https://*", "https://*.*.test", "ionic://*.localhost", "file://", "file:///", "data:", "https://app.example.test:0", "com.example.app:/"}
	for _, uri := range good {
		if _, err := Origins(field.Some([]string{uri}), "uris", nil); err != nil {
			t.Errorf("%q returned %v", uri, err)
		}
	}
	for _, uri := range bad {
		if _, err := Origins(field.Some([]string{uri}), "uris", nil); !errors.Is(err, apierr.Format) {
			t.Errorf("%q returned %v", uri, err)
		}
	}
}

func TestAListOfURIsIsBounded(t *testing.T) {
	t.Parallel()
	entry := "https://app.example.test/" + strings.Repeat("x", 475) // 500 characters
	fits := slices.Repeat([]string{entry}, 8)
	fits[7] = fits[7][:493] // 4000 with the commas
	if _, err := Callbacks(field.Some(fits), "uris", nil); err != nil {
		t.Errorf("4000 characters returned %v", err)
	}
	fits[7] += "x"
	if _, err := Callbacks(field.Some(fits), "uris", nil); !errors.Is(err, apierr.TooLong) {
		t.Errorf("4001 characters returned %v", err)
	}
	t.Run("and may be emptied", func(t *testing.T) {
		for _, in := range []field.List{field.Some([]string{}), {Present: true, Null: true}} {
			if list, err := Callbacks(in, "uris", nil); err != nil || list == nil || len(list) != 0 {
				t.Errorf("%v returned %v, %v", in, list, err)
			}
		}
	})
}

// What is let into a list leads one way to every program that reads it.
func FuzzCallbackURI(f *testing.F) {
	for _, uri := range []string{"https://app.localhost/cb", "https://*.shop.example.test:8443/cb?x=1", "myapp://serviceCallback", "com.example.app:/cb", "http://[::1]/", "https://a@b/", `https:\\a`, "javascript:/x"} {
		f.Add(uri)
	}
	f.Fuzz(func(t *testing.T, uri string) {
		_, err := Callbacks(field.Some([]string{uri}), "uris", nil)
		if err != nil {
			if !errors.Is(err, apierr.Format) && !errors.Is(err, apierr.TooLong) {
				t.Fatalf("%q returned %v", uri, err)
			}
			return
		}
		u, err := url.Parse(uri)
		if err != nil || !u.IsAbs() || u.Opaque != "" || u.User != nil || u.Fragment != "" {
			t.Fatalf("%q was accepted", uri)
		}
		if strings.ContainsFunc(uri, func(r rune) bool { return r <= ' ' || r > '~' }) || strings.ContainsAny(uri, `\#`) {
			t.Fatalf("%q was accepted", uri)
		}
		if rest := strings.TrimPrefix(u.Host, "*."); strings.Contains(uri, "*") && (rest == u.Host || !isWeb(u) || strings.Contains(rest, "*")) {
			t.Fatalf("%q was accepted with its wildcard", uri)
		}
		if _, err := Origins(field.Some([]string{u.Scheme + "://" + u.Host}), "uris", nil); u.Host != "" && err != nil {
			t.Fatalf("the origin of %q returned %v", uri, err)
		}
	})
}

func TestListedCallbacks(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		listed   string
		is, isNo []string
	}{
		{"https://app.example.test/cb", []string{
			"https://app.example.test/cb", "https://app.example.test/cb?x=1", "https://app.example.test/cb?next=*", "HTTPS://App.Example.Test/cb", "https://app.example.test:443/cb",
		}, []string{
			"", "x", "/cb", "http://app.example.test/cb", "https://app.example.test/CB", "https://app.example.test/cb/", "https://app.example.test/cb/more", "https://app.example.test",
			"https://app.example.test:8443/cb", "https://other.example.test/cb", "https://a.app.example.test/cb", "https://example.test/cb", "https://app.example.test.evil.example/cb",
			"https://app.example.test./cb", "https://app.example.test@evil.example/cb", "https://jo:x@app.example.test/cb", `https://app.example.test\@evil.example/cb`,
			"//app.example.test/cb", "https:app.example.test/cb", "https://app.example.test/cb#x", "https://app.example.test/cb?x=1#y", "https://app.example.test/x/../cb",
			"https://app.example.test/%63b", "https://app.example.test/%2563b", "https://app.example.test//cb", "https://app.example.test/cb\n", "https://app.example.test/cb?\n", "javascript://app.example.test/cb",
		}},
		{"https://*.shop.example.test/cb", []string{
			"https://eu.shop.example.test/cb", "https://EU.shop.example.test/cb?x", "https://a-b.shop.example.test/cb",
		}, []string{
			"https://shop.example.test/cb", "https://.shop.example.test/cb", "https://a.b.shop.example.test/cb", "https://*.shop.example.test/cb", "https://evilshop.example.test/cb",
			"https://evil.example/.shop.example.test/cb", "https://evil.example?.shop.example.test/cb", "https://eu.shop.example.test:444/cb", "https://eu.shop.example.test/",
		}},
		{"https://app.example.test", []string{"https://app.example.test", "https://app.example.test/", "https://app.example.test?x=1"}, []string{"https://app.example.test/cb"}},
		{"https://app.example.test/?mode=sso", []string{"https://app.example.test", "https://app.example.test/?other"}, nil},
		{"http://localhost:3000/cb", []string{"http://localhost:3000/cb"}, []string{"http://localhost/cb", "http://localhost:80/cb", "https://localhost:3000/cb"}},
		{"http://[::1]:8080/cb", []string{"http://[::1]:8080/cb"}, []string{"http://[::2]:8080/cb", "http://[::1]/cb"}},
		{"myapp://serviceCallback", []string{"myapp://serviceCallback", "myapp://servicecallback?code=1"}, []string{"myapp://serviceCallback/", "other://serviceCallback", "myapp://x"}},
		{"com.example.app:/oauth", []string{"com.example.app:/oauth", "com.example.app:/oauth?x=1"}, []string{"com.example.app:/", "com.example.app:oauth", "com.example.app://evil/oauth"}},
	} {
		for _, uri := range c.is {
			if !IsListed(uri, []string{c.listed}) {
				t.Errorf("%q is refused by %s", uri, c.listed)
			}
		}
		for _, uri := range c.isNo {
			if IsListed(uri, []string{c.listed}) {
				t.Errorf("%q is taken for %s", uri, c.listed)
			}
		}
	}
}

// A callback that an entry lets in leads to the host of the entry, or to one that
// is a label below its wildcard.
func FuzzListedCallback(f *testing.F) {
	for _, uri := range []string{"https://eu.shop.example.test/cb", "https://shop.example.test/cb", "https://evil.example@eu.shop.example.test/cb", `https://evil.example\.shop.example.test/cb`,
		"https://evil.example/.shop.example.test/cb", "https://a.b.shop.example.test/cb", "https://app.localhost:443/cb?x=*"} {
		f.Add(uri)
	}
	f.Fuzz(func(t *testing.T, uri string) {
		u, err := url.Parse(uri)
		for _, listed := range []string{"https://*.shop.example.test/cb", "https://app.localhost/cb"} {
			if !IsListed(uri, []string{listed}) {
				continue
			}
			if err != nil || u.Scheme != "https" || u.User != nil || u.EscapedPath() != "/cb" || u.Fragment != "" || u.Port() != "" && u.Port() != "443" {
				t.Fatalf("%q is taken for %s", uri, listed)
			}
			label, below, _ := strings.Cut(strings.ToLower(u.Hostname()), ".")
			if below != "shop.example.test" && label+"."+below != "app.localhost" || label == "" || label == "*" {
				t.Fatalf("%q is taken for %s", uri, listed)
			}
		}
	})
}

func TestOriginsAreComparedBySchemeHostAndPort(t *testing.T) {
	t.Parallel()
	listed := []string{"https://app.example.test", "https://*.apps.example.test:8443"}
	for origin, want := range map[string]bool{
		"https://app.example.test": true, "https://app.example.test/": true, "https://app.example.test:443": true, "HTTPS://APP.example.test": true,
		"https://shop.apps.example.test:8443/": true, "http://app.example.test": false, "https://app.example.test:8443": false,
		"https://app.example.test//": false, "https://app.example.test/x": false, "https://evil.test/https://app.example.test": false,
		"https://shop.apps.example.test": false, "null": false, "": false, "/": false,
	} {
		if IsListedOrigin(origin, listed) != want {
			t.Errorf("the origin %q is listed: %v, want %v", origin, !want, want)
		}
	}
}

func TestAWildcardOverAPublicSuffixIsRefused(t *testing.T) {
	for _, bad := range []string{"https://*.com", "https://*.CO.uk", "https://*.github.io", "https://*.com:8443", "http://*.xn--p1ai"} {
		if _, err := Origins(field.Some([]string{bad}), "uris", nil); !errors.Is(err, apierr.Format) {
			t.Errorf("the origin %s is taken: %v", bad, err)
		}
		if _, err := Callbacks(field.Some([]string{bad + "/callback"}), "uris", nil); !errors.Is(err, apierr.Format) {
			t.Errorf("the callback %s/callback is taken: %v", bad, err)
		}
	}
	for _, good := range []string{"https://*.example.com", "https://*.example.co.uk", "https://*.jo.github.io", "http://*.localhost:3000", "https://*.corp.test", "https://com"} {
		if _, err := Origins(field.Some([]string{good}), "uris", nil); err != nil {
			t.Errorf("the origin %s is refused: %v", good, err)
		}
	}
}

func TestAnEntryThatIsPostedBackIsNotValidatedAgain(t *testing.T) {
	current := []string{"https://*.com", "https://shop.example.com"}
	if got, err := Origins(field.Some(current), "uris", current); err != nil || !slices.Equal(got, current) {
		t.Errorf("the current list is read as %q, %v", got, err)
	}
	if _, err := Origins(field.Some([]string{"https://*.net", "https://*.com"}), "uris", current); !errors.Is(err, apierr.Format) {
		t.Errorf("a new entry is not validated: %v", err)
	}
}
