package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/doorward/doorward/pkg/client"
)

// openID signs users in by OpenID Connect: an authorization code with PKCE. The library does what the standard
// asks of a relying party.
type openID struct {
	*deployment
	oauth    oauth2.Config
	verifier *oidc.IDTokenVerifier
	endURL   string // end_session_endpoint
	home     string
}

// newOpenID reads the metadata of the application's provider, and registers the client.
func newOpenID(ctx context.Context, d *deployment, application *client.Application, home string) (*openID, error) {
	settings, err := client.Get[client.OpenIdProvider](ctx, d.api, application.OpenIdProvider.Href)
	if err != nil {
		return nil, err
	}
	provider, err := oidc.NewProvider(oidc.ClientContext(ctx, d.http), settings.Issuer)
	if err != nil {
		return nil, err
	}
	var metadata struct {
		EndSession string `json:"end_session_endpoint"`
	}
	if err := provider.Claims(&metadata); err != nil {
		return nil, err
	}
	o := &openID{deployment: d, endURL: metadata.EndSession, home: home}
	o.oauth = oauth2.Config{
		Endpoint: provider.Endpoint(), RedirectURL: home + "/callback", Scopes: []string{oidc.ScopeOpenID, "profile", "email"},
	}
	if o.oauth.ClientID, o.oauth.ClientSecret, err = d.findOrMakeClient(ctx, application, home); err != nil {
		return nil, err
	}
	o.verifier = provider.Verifier(&oidc.Config{ClientID: o.oauth.ClientID})
	return o, nil
}

// findOrMakeClient returns the client of an application, with a new secret: a secret is shown once.
func (d *deployment) findOrMakeClient(ctx context.Context, application *client.Application, home string) (id, secret string, err error) {
	var registered *client.OpenIdClient
	query := url.Values{"name": {application.Name}}
	for found, err := range client.All[client.OpenIdClient](ctx, d.api, application.OpenIdClients.Href, query) {
		if err != nil {
			return "", "", err
		}
		registered = found
	}
	body := client.NewOpenIdClient{Name: application.Name, RedirectUris: &[]string{home + "/callback"},
		PostLogoutRedirectUris: &[]string{home + "/callback"}}
	if registered == nil {
		registered, err = client.Create[client.OpenIdClient](ctx, d.api, application.OpenIdClients.Href, body)
	} else {
		registered, err = client.Update[client.OpenIdClient](ctx, d.api, registered.Href, body)
	}
	if err != nil {
		return "", "", err
	}
	for former, err := range client.All[client.ClientSecret](ctx, d.api, registered.Href+"/secrets", nil) {
		if err == nil {
			err = client.Delete(ctx, d.api, former.Href)
		}
		if err != nil {
			return "", "", err
		}
	}
	made, err := client.Create[client.ClientSecret](ctx, d.api, registered.Href+"/secrets", struct{}{})
	if err != nil {
		return "", "", err
	}
	return registered.ClientId, *made.Secret, nil
}

func (o *openID) name() string { return "OpenID Connect" }

func (o *openID) login() (string, session) {
	kept := session{State: rand.Text(), Nonce: rand.Text(), Verifier: oauth2.GenerateVerifier()}
	return o.oauth.AuthCodeURL(kept.State, oidc.Nonce(kept.Nonce), oauth2.S256ChallengeOption(kept.Verifier)), kept
}

func (o *openID) logout(s session) (string, session) {
	kept := session{State: rand.Text()}
	return o.endURL + "?" + url.Values{
		"id_token_hint": {s.IDToken}, "post_logout_redirect_uri": {o.home + "/callback"}, "state": {kept.State},
	}.Encode(), kept
}

func (o *openID) answer(r *http.Request, kept session) (session, error) {
	switch {
	case kept.State == "" || kept.State != r.FormValue("state"):
		return session{}, errors.New("this is not the answer to a request of this browser")
	case r.FormValue("error") != "":
		return session{}, fmt.Errorf("%s: %s", r.FormValue("error"), r.FormValue("error_description"))
	case kept.Verifier == "":
		return session{}, nil // of a logout
	}
	ctx := oidc.ClientContext(r.Context(), o.http)
	tokens, err := o.oauth.Exchange(ctx, r.FormValue("code"), oauth2.VerifierOption(kept.Verifier))
	if err != nil {
		return session{}, err
	}
	text, _ := tokens.Extra("id_token").(string)
	verified, err := o.verifier.Verify(ctx, text)
	if err != nil {
		return session{}, err
	}
	if verified.Nonce != kept.Nonce {
		return session{}, errors.New("the ID token answers another request")
	}
	var claims map[string]any
	if err := verified.Claims(&claims); err != nil {
		return session{}, err
	}
	in, err := o.signedIn(r.Context(), "/accounts/"+verified.Subject, claims)
	in.Token, in.IDToken = tokens.AccessToken, text
	return in, err
}
