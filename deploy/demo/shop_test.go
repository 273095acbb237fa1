package main

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/doorward/doorward/pkg/client"
)

func newShop() (*shop, *signedRequests) {
	d := &deployment{key: client.Credentials{ID: "ID", Secret: "secret"}}
	application := &client.Application{Name: "Demo shop"}
	way := &signedRequests{d, application, "http://localhost:8081/callback"}
	return &shop{
		deployment: d, application: application, way: way, others: []*demoSite{{Title: "the club", host: "localhost:8082"}},
		sessions: map[string]session{},
	}, way
}

// visit returns what the shop answers to a browser with a cookie.
func (s *shop) visit(path, cookie string) (status int, body string) {
	r := httptest.NewRequest(http.MethodGet, path, nil)
	r.AddCookie(&http.Cookie{Name: s.cookieName(), Value: cookie})
	w := httptest.NewRecorder()
	s.routes().ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

func TestTheShopGreetsAUserByNameElseByEmail(t *testing.T) {
	s, _ := newShop()
	for greeting, account := range map[string]client.Account{
		"as <strong>Jo Doe</strong>":          {FullName: "Jo Doe", Email: "jo@example.test"},
		"as <strong>jo@example.test</strong>": {Email: "jo@example.test"},
	} {
		s.sessions["x"] = session{Account: &account}
		if status, body := s.visit("/", "x"); status != 200 || !strings.Contains(body, greeting) {
			t.Errorf("the page is %d %s, want %s", status, body, greeting)
		}
	}
	if status, body := s.visit("/", ""); status != 200 || !strings.Contains(body, "You are not signed in.") {
		t.Errorf("a stranger is shown %d %s", status, body)
	}
}

func TestAnAnswerThatTheShopRefusesLeadsToAPageThatSaysWhatToDo(t *testing.T) {
	s, way := newShop()
	s.sessions["begun"] = session{State: "a"}
	for response, want := range map[string]string{
		"":                                     "the address has no assertion of Doorward: no JWT",
		"abc":                                  "the address has no assertion of Doorward: no JWT",
		"a.b.c":                                "the address has no assertion of Doorward: the signature is wrong",
		way.sign(map[string]any{"state": "b"}): "this is not the answer to a request of this browser",
		way.sign(map[string]any{"state": "a", "err": map[string]any{"status": 400, "developerMessage": "<Too late>"}}): "&lt;Too late&gt;",
		way.sign(map[string]any{"state": "a", "aud": "another"}):                                                       "for another application",
	} {
		status, body := s.visit("/callback?jwtResponse="+response, "begun")
		if status != 400 || !strings.Contains(body, want) || !strings.Contains(body, `href="/login"`) ||
			!strings.Contains(body, "Please begin again.") {
			t.Errorf("%q is answered with %d %s, want %s", response, status, body, want)
		}
	}
}

func TestAPortInUseIsToldAtOnce(t *testing.T) {
	taken, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "localhost:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	t.Setenv("DEMO_SHOP_LISTEN", "localhost:0")
	t.Setenv("DEMO_LIBRARY_LISTEN", "localhost:0")
	t.Setenv("DEMO_CLUB_LISTEN", taken.Addr().String())
	if _, err := listen(t.Context()); err == nil || !strings.Contains(err.Error(), "DEMO_CLUB_LISTEN") {
		t.Errorf("listen on a port in use returned %v, want an error that names DEMO_CLUB_LISTEN", err)
	}
}

func TestTheEndOfStandaloneIsToldAtOnce(t *testing.T) {
	s, err := startStandalone(t.Context(), "/bin/false")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.await(t.Context(), t.TempDir()); err == nil || !strings.Contains(err.Error(), "has ended") {
		t.Errorf("await returned %v, want the end of standalone", err)
	}
}

func TestAnOpenIDAnswerOfAnotherRequestIsRefused(t *testing.T) {
	o := &openID{}
	for query, want := range map[string]string{
		"?code=x":                        "this is not the answer to a request of this browser",
		"?code=x&state=b":                "this is not the answer to a request of this browser",
		"?error=access_denied&state=a":   "access_denied",
		"?state=a&error=&code=&ignored=": "",
	} {
		kept := session{State: "a"} // of a logout: a login keeps a verifier too
		_, err := o.answer(httptest.NewRequest(http.MethodGet, "/callback"+query, nil), kept)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("the answer to %s is %v, want %q", query, err, want)
		}
	}
	address, kept := (&openID{}).login()
	if kept.State == "" || kept.Nonce == "" || kept.Verifier == "" || strings.Contains(address, kept.Verifier) {
		t.Errorf("a login leads to %s and keeps %v", address, kept)
	}
}
