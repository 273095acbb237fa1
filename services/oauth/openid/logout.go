package openid

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/api/oauthapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/oauth/relyingparty"
	"github.com/doorward/doorward/services/oauth/store"
)

const (
	logoutTokenAge = 2 * time.Minute
	logoutEvent    = "http://schemas.openid.net/event/backchannel-logout"
)

// logoutParameters are the parameters of a logout request that have a meaning. logout_hint is accepted without one.
var logoutParameters = []string{
	"id_token_hint", "client_id", "post_logout_redirect_uri", "state", "logout_hint", "ui_locales",
}

// LogoutRequest checks a logout request. Whatever is wrong with it is for the user: nothing is sent to a redirect URI
// that is not registered with a client that is known.
func (s *Service) LogoutRequest(ctx context.Context, in oauthapi.AskLogout) (oauthapi.Logout, error) {
	i, err := s.issuer(ctx, in.Application)
	if err != nil {
		return oauthapi.Logout{}, err
	}
	p, repeated := readParameters(in.Parameters, logoutParameters)
	if len(repeated) > 0 {
		return oauthapi.Logout{}, refuse("invalid_request", "%s is sent more than once", repeated[0])
	}
	if err := p.check(); err != nil {
		return oauthapi.Logout{}, err
	}
	out := oauthapi.Logout{
		Tenant: i.app.TenantID, Application: i.app.ID, Issuer: i.url, State: p["state"], UILocales: p.words("ui_locales"),
	}
	client, err := s.logoutClient(ctx, i, p, &out)
	if err != nil {
		return out, err
	}
	uri := p["post_logout_redirect_uri"]
	switch {
	case uri == "":
		return out, nil
	case out.Client == nil:
		return out, refuse("invalid_request", "post_logout_redirect_uri needs an id_token_hint or a client_id")
	case !relyingparty.MatchesURI(client.Settings, client.Settings.PostLogoutRedirectURIs, uri):
		return out, refuse("invalid_request", "post_logout_redirect_uri is not registered: %q", uri)
	}
	out.RedirectURI = uri
	return out, nil
}

// logoutClient finds the client of a logout request by its id_token_hint and its client_id, and writes what they say
// into out. A client that was deleted since its hint was signed is not known.
func (s *Service) logoutClient(ctx context.Context, i issuer, p parameters,
	out *oauthapi.Logout) (client store.OpenIDClient, err error) {
	clientID := p["client_id"]
	if text := p["id_token_hint"]; text != "" {
		hint, err := s.readHint(ctx, i, text)
		switch {
		case err != nil:
			return client, err
		case clientID != "" && !slices.Contains(hint.audience, clientID):
			return client, refuse("invalid_request", "id_token_hint is of another client than client_id")
		case clientID == "":
			clientID = hint.audience[0]
		}
		out.Subject, out.Session = hint.subject, hint.session
	}
	if clientID == "" {
		return client, nil
	}
	client, err = s.findClient(ctx, i, clientID)
	if errors.Is(err, apierr.Unauthorized) && out.Subject != "" {
		return client, nil
	}
	if errors.Is(err, apierr.Unauthorized) {
		err = refuse("invalid_request", "client_id names no client of the application that is enabled")
	}
	if err != nil {
		return client, err
	}
	shown := clientOf(client, i.url)
	out.Client = &shown
	if client.Settings.SubjectType == relyingparty.SubjectPublic && out.Subject != "" {
		out.Account, err = id.Parse(out.Subject)
	}
	return client, err
}

// EndTokens ends the tokens of an account that were made in a session, or for a client. A code that is issued in the
// session meanwhile, by a login that had begun before, ends too.
func (s *Service) EndTokens(ctx context.Context, in oauthapi.EndTokens) (oauthapi.Done, error) {
	return oauthapi.Done{}, s.Store.Tx(ctx, func(tx *store.Tx) error {
		if err := tx.EndSessions(ctx, in.Tenant, in.Sessions, s.Now().Add(maxLogin)); err != nil {
			return err
		}
		tx.EndLogins(store.LoginsOf{
			Tenant: in.Tenant, Account: in.Account, Sessions: in.Sessions, Client: in.Client, KeepOffline: in.KeepOffline,
		})
		return nil
	})
}

// LogoutToken signs a logout token for a client.
func (s *Service) LogoutToken(ctx context.Context, in oauthapi.AskLogoutToken) (oauthapi.LogoutToken, error) {
	client, err := s.Store.CachedOpenIDClient(ctx, id.Ref{Tenant: in.Tenant, ID: in.Client})
	if err != nil {
		return oauthapi.LogoutToken{}, err
	}
	i, err := s.issuer(ctx, client.ApplicationID)
	switch {
	case err != nil:
		return oauthapi.LogoutToken{}, err
	case client.Status != directoryapi.Enabled || client.Settings.BackchannelLogoutURI == nil:
		return oauthapi.LogoutToken{}, apierr.NotFound
	}
	now := s.Now()
	claims := secure.Claims{
		"iss": i.url, "sub": i.subject(client, in.Account), "aud": client.ClientID, "iat": now.Unix(),
		"exp": now.Add(logoutTokenAge).Unix(), "jti": in.JTI, "events": map[string]any{logoutEvent: map[string]any{}},
	}
	if in.Session != "" {
		claims["sid"] = in.Session
	}
	token, err := s.Sign(ctx, in.Tenant, i.idTokenAlgorithm(client), map[string]any{"typ": "logout+jwt"}, claims,
		now.Add(logoutTokenAge))
	return oauthapi.LogoutToken{Address: *client.Settings.BackchannelLogoutURI, Token: token}, err
}
