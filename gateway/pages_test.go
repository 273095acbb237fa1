package gateway

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/href"
)

func TestEveryErrorHasAPageThatMoreInfoLeadsTo(t *testing.T) {
	t.Parallel()
	s := openGateway(t)
	browser := http.Header{"Authorization": nil, "Accept": {"text/html,application/xhtml+xml,*/*;q=0.8"}}
	var refusal struct{ MoreInfo string }
	if err := json.Unmarshal(s.get(t, "/v1/accounts/1?expand=nothing").wantError(400, 2107).body, &refusal); err != nil {
		t.Fatal(err)
	}
	path, ours := strings.CutPrefix(refusal.MoreInfo, base.Host())
	if !ours || path != "/errors/2107" {
		t.Fatalf("moreInfo is %q", refusal.MoreInfo)
	}
	a := s.do(t, call{method: "GET", path: path, header: browser}).want(200)
	for _, want := range []string{"<title>Error 2107: The attribute cannot be expanded · Doorward</title>",
		"<h1>Error 2107: The attribute cannot be expanded</h1>", "What to change"} {
		if !strings.Contains(string(a.body), want) {
			t.Errorf("the page lacks %s: %s", want, a.body)
		}
	}
	for name, want := range map[string]string{"Content-Type": "text/html; charset=utf-8", "Content-Security-Policy": pagePolicy, "X-Content-Type-Options": "nosniff",
		"Strict-Transport-Security": "max-age=31536000", "Vary": "Accept"} {
		if got := a.header.Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	list := s.do(t, call{method: "GET", path: "/errors", header: browser}).want(200)
	for _, e := range apierr.All() {
		var found apierr.Entry
		link := "/errors/" + strconv.Itoa(e.Code)
		body := s.do(t, call{method: "GET", path: link, header: http.Header{"Authorization": nil, "Accept": {"application/json"}}}).want(200).body
		if err := json.Unmarshal(body, &found); err != nil || found.Code != e.Code || found.Status != e.Status || found.Message == "" || found.Meaning == "" || found.Cause == "" || found.Remedy == "" {
			t.Errorf("%s is %s, %v", link, body, err)
		}
		if !strings.Contains(string(list.body), `href="`+link+`"`) {
			t.Errorf("the list lacks %s", link)
		}
	}
	for _, unknown := range []string{"1", "x", "0400", "400%20"} {
		s.get(t, "/errors/"+unknown).wantError(404, 404)
	}
	s.do(t, call{method: "POST", path: "/errors/400", header: browser}).wantError(405, 1100)
}

func TestTheStartPageIsForThePrivateNetwork(t *testing.T) {
	t.Parallel()
	s := openGateway(t, withMailbox(t), func(cfg *Config, _ *testGateway) { cfg.Data = "/srv/door" })
	page := func(s *testGateway, header http.Header) string {
		t.Helper()
		header["Authorization"] = nil
		return string(s.do(t, call{method: "GET", path: "/", header: header}).want(200).body)
	}
	start := page(s, http.Header{})
	for _, want := range []string{"cd '/srv/door'", "/srv/door/apikey.json", "curl -sL -K curl.conf " + string(base) + "/tenants/current", `href="/_mailbox"`, `href="/errors"`} {
		if !strings.Contains(start, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
	for _, header := range []http.Header{{"X-Forwarded-For": {"10.0.0.1"}}, {"Forwarded": {"for=10.0.0.1"}}, {"Via": {"1.1 proxy"}}} {
		if strings.Contains(page(s, header), "curl") {
			t.Errorf("a client behind a proxy that is not trusted is shown how to begin: %v", header)
		}
		header["Authorization"] = nil
		s.do(t, call{method: "GET", path: "/_mailbox", header: header}).wantError(404, 404)
	}
	behind := openGateway(t, func(cfg *Config, _ *testGateway) { cfg.TrustedHops = 1 })
	if !strings.Contains(page(behind, http.Header{"X-Forwarded-For": {"192.168.3.4"}}), "curl") {
		t.Error("a client of the private network is not shown how to begin")
	}
	public := page(behind, http.Header{"X-Forwarded-For": {"203.0.113.9"}})
	if strings.Contains(public, "curl") || strings.Contains(public, "key of its first tenant") || !strings.Contains(public, "keeps accounts and logins") ||
		!strings.Contains(public, "<title>Doorward</title>") || strings.Contains(public, `class="product"`) {
		t.Errorf("others are shown %s", public)
	}
	if strings.Contains(page(behind, http.Header{"X-Forwarded-For": {"192.168.3.4"}}), "_mailbox") {
		t.Error("the page leads to a mailbox that is not deployed")
	}
}

// Who may sign up is led there, on this machine and elsewhere.
func TestTheStartPageLeadsToTheSignUpWhereThereIsOne(t *testing.T) {
	t.Parallel()
	for _, signUp := range []bool{true, false} {
		s := openGateway(t, func(cfg *Config, _ *testGateway) { cfg.SignUp, cfg.TrustedHops = signUp, 1 })
		for _, address := range []string{"192.168.3.4", "203.0.113.9"} {
			header := http.Header{"X-Forwarded-For": {address}, "Authorization": nil}
			body := string(s.do(t, call{method: "GET", path: "/", header: header}).want(200).body)
			if strings.Contains(body, `href="/register"`) != signUp {
				t.Errorf("with sign-ups %t, %s is shown %s", signUp, address, body)
			}
		}
	}
}

func TestPagesTellBrowsersToComeByHTTPS(t *testing.T) {
	t.Parallel()
	for address, want := range map[href.Base]string{
		"https://id.example.com/v1": "max-age=31536000", "https://localhost:8443/v1": "", "https://shop.localhost/v1": "", "https://127.0.0.1/v1": "", "https://[::1]:8443/v1": "",
	} {
		if got := hsts(address); got != want {
			t.Errorf("%s sends %q", address, got)
		}
	}
	s := openGateway(t)
	if a := s.do(t, call{method: "GET", path: "/register", header: anonymous()}); a.header.Get("Strict-Transport-Security") == "" {
		t.Error("a page of a service goes without the header")
	}
	if a := s.get(t, "/v1/accounts/1"); a.header.Get("Strict-Transport-Security") != "" {
		t.Error("an answer to a program has the header")
	}
}

func TestABrowserIsShownAPageOfWhatIsNotThere(t *testing.T) {
	t.Parallel()
	s := openGateway(t)
	browser := http.Header{"Authorization": nil, "Accept": {"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}}
	for path, want := range map[string]string{
		"/errors/999": "no error has this code", "/docs/nothing": "the reference has no such page", "/nothing": "The requested resource does not exist.",
		"/a%5Cb": "backslash",
	} {
		a := s.do(t, call{method: "GET", path: path, header: browser}).want(404)
		body := string(a.body)
		if a.header.Get("Content-Type") != "text/html; charset=utf-8" || a.header.Get("Content-Security-Policy") != pagePolicy ||
			!strings.Contains(body, "<h1>Not Found</h1>") || !strings.Contains(body, want) || !strings.Contains(body, a.header.Get("Service-Request-Id")) {
			t.Errorf("%s shows %v %s", path, a.header, body)
		}
		s.do(t, call{method: "GET", path: path, header: anonymous()}).wantError(404, 404)
		s.do(t, call{method: "GET", path: path, header: http.Header{"Authorization": nil, "Accept": {"*/*"}}}).wantError(404, 404)
	}
	s.do(t, call{method: "GET", path: "/v1/nothing", header: browser}).wantError(401, 401)
	s.do(t, call{method: "POST", path: "/errors/400", header: browser}).wantError(405, 1100)
}
