package e2e_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/doorward/doorward/deploy/e2e"
)

// An issuer at the domain of the hosted pages is one for a relying party's library, and its browsers have the session
// of the deployment.
func TestAnIssuerAtTheDomainOfTheHostedPages(t *testing.T) {
	fixture := newHosted(t)
	account := client.Register(t, fixture.Application.Link(t, "accounts"))
	provider := fixture.Application.Link(t, "openIdProvider")
	issuer := pageOrigin(t) + "/oidc/" + fixture.Application.ID()
	client.Update(t, provider, e2e.Object{"issuerDomain": "ID_SITE"})
	awaitTrue(t, "the issuer at the domain of the hosted pages", func() bool { // an event of its last change is under way
		return client.Get(t, provider).Text("issuer") == issuer
	})
	party := newRelyingParty(t, fixture, nil)
	party.issuer = issuer
	for _, origin := range []string{pageOrigin(t), client.Key.HostURL()} {
		metadata := get(origin + "/.well-known/oauth-authorization-server/oidc/" + fixture.Application.ID())
		metadata.Anonymous = true
		if got := client.WantObject(t, http.StatusOK, metadata).Text("issuer"); got != issuer {
			t.Errorf("at %s the issuer is %s, want %s", origin, got, issuer)
		}
	}

	ctx := oidc.ClientContext(t.Context(), client.HTTP)
	found, err := oidc.NewProvider(ctx, issuer)
	if err != nil {
		t.Fatal(err)
	}
	config := oauth2.Config{ClientID: party.client.Text("clientId"), ClientSecret: party.secret,
		Endpoint: found.Endpoint(), RedirectURL: callback, Scopes: []string{oidc.ScopeOpenID, "email", oidc.ScopeOfflineAccess}}
	browser := client.Browser()
	// open opens an address below the issuer, and returns where the answer of the deployment's own address leads.
	open := func(browser *e2e.Client, address string, status int) string {
		t.Helper()
		if !strings.HasPrefix(address, issuer+"/") {
			t.Fatalf("the browser is sent to %s", address)
		}
		to := browser.Want(t, http.StatusTemporaryRedirect, asBrowser(address))
		want := client.Key.HostURL() + strings.TrimPrefix(address, pageOrigin(t))
		if to.Header.Get("Location") != want || to.Header.Get("Set-Cookie") != "" {
			t.Fatalf("%s leads to %s, want %s", address, to.Header.Get("Location"), want)
		}
		return browser.Want(t, status, asBrowser(want)).Header.Get("Location")
	}
	ask := func(more ...oauth2.AuthCodeOption) string {
		more = append(more, oidc.Nonce("n-1"), oauth2.S256ChallengeOption(party.verifier))
		return config.AuthCodeURL("a b~?ü&=#", more...)
	}
	page := party.page(browser, open(browser, ask(), http.StatusSeeOther))
	page.logIn(account.Text("email"))
	open(client.Browser(), page.back, http.StatusBadRequest)
	token, err := config.Exchange(ctx, party.answer(open(browser, page.back, http.StatusSeeOther)).Get("code"),
		oauth2.VerifierOption(party.verifier))
	if err != nil {
		t.Fatal(err)
	}
	raw, _ := token.Extra("id_token").(string)
	idToken, err := found.Verifier(&oidc.Config{ClientID: config.ClientID}).Verify(ctx, raw)
	if err != nil || idToken.Subject != account.ID() || idToken.Nonce != "n-1" {
		t.Errorf("the ID token is %+v, %v", idToken, err)
	}
	if info, err := found.UserInfo(ctx, oauth2.StaticTokenSource(token)); err != nil || info.Email != account.Text("email") {
		t.Errorf("UserInfo answers %+v, %v", info, err)
	}
	refreshed, err := config.TokenSource(ctx, &oauth2.Token{RefreshToken: token.RefreshToken}).Token()
	if err != nil {
		t.Fatal(err)
	}
	silent := oauth2.SetAuthURLParam("prompt", "none")
	if got := party.answer(open(browser, ask(silent), http.StatusSeeOther)); got.Get("code") == "" {
		t.Errorf("with a session the response is %v", got)
	}
	bye := open(browser, issuer+"/logout?"+url.Values{"id_token_hint": {raw}, "state": {"s"},
		"post_logout_redirect_uri": {"https://shop.localhost/bye"}}.Encode(), http.StatusSeeOther)
	if bye != "https://shop.localhost/bye?state=s" {
		t.Errorf("the logout leads to %s", bye)
	}
	if got := party.answer(open(browser, ask(silent), http.StatusSeeOther)); got.Get("error") != "login_required" {
		t.Errorf("after the logout the response is %v", got)
	}

	client.Update(t, provider, e2e.Object{"issuerDomain": "HOST"})
	if _, err := oidc.NewProvider(ctx, issuer); err == nil {
		t.Error("the former issuer still answers as such")
	}
	if _, err := config.TokenSource(ctx, &oauth2.Token{RefreshToken: refreshed.RefreshToken}).Token(); err == nil ||
		!strings.Contains(err.Error(), "invalid_grant") {
		t.Errorf("a refresh token of the former issuer is answered with %v", err)
	}
}
