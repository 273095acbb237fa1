package rest_test

import (
	"cmp"
	"net/http"
	"strings"
	"testing"

	"github.com/doorward/doorward/pkg/locale"
	idsiterest "github.com/doorward/doorward/services/idsite/rest"
)

const browserAccept = "text/html,application/xhtml+xml,*/*;q=0.8"

// Pages of Arabic and Hebrew are written from right to left, all others from left to right.
func TestPagesHaveTheDirectionOfTheirLanguage(t *testing.T) {
	c := newClient(t)
	tenant, site := c.tenant(t, "mine")
	_, settings := c.update(t, tenant, site, `{}`)
	for _, language := range locale.Languages {
		direction := map[string]string{"ar": "rtl", "he": "rtl"}[language]
		want := `<html lang="` + language + `" dir="` + cmp.Or(direction, "ltr") + `">`
		for _, path := range []string{"/site/", "/site/nonsense", "/passwordReset?sptoken=x"} {
			_, body := c.send(t, "GET", path, "", "", "Accept", browserAccept, "Accept-Language", language,
				idsiterest.HostHeader, settings["domainName"].(string))
			if !strings.Contains(body, want) {
				t.Errorf("%s lacks %s: %.200s", path, want, body)
			}
		}
	}
}

// A path that has no page at a domain of hosted pages is 404, with a way to the first page for a browser.
func TestAnUnknownPathOfHostedPages(t *testing.T) {
	c := newClient(t)
	tenant, site := c.tenant(t, "mine")
	_, settings := c.update(t, tenant, site, `{}`)
	domain := settings["domainName"].(string)
	for path, want := range map[string]int{
		"/": 200, "/index.html": 200, "/nonsense": 404, "/login": 404, "/js/app.js": 404, "/static/none.js": 404, "/%ff": 404,
	} {
		answer, body := c.send(t, "GET", "/site"+path, "", "", "Accept", browserAccept, idsiterest.HostHeader, domain)
		if answer.StatusCode != want || !strings.HasPrefix(answer.Header.Get("Content-Type"), "text/html") {
			t.Errorf("%s answers %d %s", path, answer.StatusCode, answer.Header.Get("Content-Type"))
		}
		if want == 404 && (!strings.Contains(body, "This page does not exist") || !strings.Contains(body, `href="/"`)) {
			t.Errorf("%s shows %s", path, body)
		}
	}
	answer, body := c.send(t, "GET", "/site/nonsense", "", "", idsiterest.HostHeader, domain)
	if answer.StatusCode != 404 || !strings.HasPrefix(body, "{") {
		t.Errorf("a program gets %d %s", answer.StatusCode, body)
	}
}

// What goes wrong before a browser can be sent back is a page, and JSON for a program.
func TestABrowserIsShownAPageOfAnError(t *testing.T) {
	c, _ := newClientAPI(t)
	for what, address := range map[string]string{
		"an unknown domain":     "/site/",
		"a bad redirect_uri":    "/client/calm-otter/authorize?redirect_uri=https://evil.example/",
		"a missing parameter":   "/client/calm-otter/authorize",
		"a state of no browser": "/client/calm-otter/authorize/callback?state=x&code=y",
	} {
		for accept, page := range map[string]bool{browserAccept: true, "application/json": false, "": false} {
			answer, body := c.send(t, http.MethodGet, address, "", "", "Accept", accept, "Accept-Language", "de", idsiterest.HostHeader,
				map[bool]string{true: "unknown.example.test"}[strings.HasPrefix(address, "/site")])
			if answer.StatusCode != 400 && answer.StatusCode != 404 || strings.HasPrefix(body, "<!doctype html>") != page ||
				page && !strings.Contains(body, `lang="de"`) || answer.Header.Get("Location") != "" {
				t.Errorf("%s, accepting %q, is answered %d %s", what, accept, answer.StatusCode, body)
			}
		}
	}
}
