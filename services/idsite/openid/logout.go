package openid

import (
	"context"
	"net/url"
	"slices"
	"strings"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/oauthapi"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/idsite/journey"
	"github.com/doorward/doorward/services/idsite/store"
)

// Logout is the answer to a logout request: a question, or the end of the session.
type Logout struct {
	Application applicationapi.Application
	Asks        bool          // the user must press the button, whose form has Secret
	Secret      secure.Secret // with Asks
	// Frames are loaded by the page, so that clients end their sessions too (OpenID Connect Front-Channel Logout).
	Frames []string
	Return string // where the user goes on; "": nowhere
}

// Logout answers a logout request (OpenID Connect RP-Initiated Logout). The session ends at once where the request
// proves, by id_token_hint, that it comes from a client of the session of this browser; otherwise the user is asked, because
// any page can lead a browser here. The answer to the question comes with the secret of the form.
func (p *Provider) Logout(ctx context.Context, application id.ID, parameters url.Values, secret secure.Secret,
	in journey.BrowserRequest) (Logout, error) {
	r, err := p.Peers.OAuth.LogoutRequest(ctx, oauthapi.AskLogout{Application: application, Parameters: parameters})
	if err != nil {
		return Logout{}, err
	}
	ctx = caller.WithTenant(ctx, r.Tenant)
	out := Logout{Return: returnTo(r)}
	out.Application, err = p.Peers.Application.Application(ctx, id.Ref{Tenant: r.Tenant, ID: r.Application})
	if err != nil {
		return out, err
	}
	session, err := p.Session(ctx, r.Tenant, in.Session)
	if err != nil || session.AccountID.IsZero() {
		return out, err // nobody is logged in any more
	}
	isProved := r.Session != "" && r.Session == session.SessionID.String() ||
		!r.Account.IsZero() && r.Account == session.AccountID
	if !isProved && !isFormSecret(secret, in.Session) {
		out.Asks, out.Secret = true, formSecret(in.Session)
		return out, nil
	}
	clients, err := p.clients(ctx, session)
	if err != nil {
		return out, err
	}
	for _, client := range clients {
		if client.FrontchannelLogoutURI == "" {
			continue
		}
		out.Frames = append(out.Frames, journey.WithParameters(client.FrontchannelLogoutURI,
			url.Values{"iss": {client.Issuer}, "sid": {session.SessionID.String()}}))
	}
	return out, p.Journey.EndSession(ctx, session, true)
}

// clients returns the clients of a session.
func (p *Provider) clients(ctx context.Context, session store.Session) ([]oauthapi.OpenIDClient, error) {
	rows, err := p.Store.SessionClients(ctx, session.TenantID, []id.ID{session.SessionID})
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	ids := make([]id.ID, len(rows))
	for i, row := range rows {
		ids[i] = row.ClientID
	}
	found, err := p.Peers.OAuth.OpenIDClients(ctx, oauthapi.AskOpenIDClients{Tenant: session.TenantID, Clients: ids})
	slices.SortFunc(found.Items, func(a, b oauthapi.OpenIDClient) int { return strings.Compare(a.ClientID, b.ClientID) })
	return found.Items, err
}

// returnTo is where the user goes on after a logout: to the registered address of the client, with its state.
func returnTo(r oauthapi.Logout) string {
	if r.RedirectURI == "" || r.State == "" {
		return r.RedirectURI
	}
	return journey.WithParameters(r.RedirectURI, url.Values{"state": {r.State}})
}
