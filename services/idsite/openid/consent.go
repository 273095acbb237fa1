package openid

import (
	"context"
	"errors"
	"slices"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/oauthapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/idsite/journey"
	"github.com/doorward/doorward/services/idsite/store"
)

// missingConsent returns the scopes that the user of a login must be asked for. One that he has allowed the client
// before is not asked for again, unless the request wants that (prompt=consent), or the client has brought its
// metadata along. The user of a device is always asked: the code may be that of an attacker's
// device (RFC 8628, section 5.4).
func (p *Provider) missingConsent(ctx context.Context, f store.Flow) ([]oauthapi.ConsentScope, error) {
	r, asked := f.OpenIDRequest, f.OpenIDRequest.Consent
	always := r.Asks("consent") || r.UserCode != "" || r.Client.Host != ""
	if always && len(asked) == 0 {
		for _, name := range r.Scopes {
			asked = append(asked, oauthapi.ConsentScope{Name: name})
		}
		if len(asked) == 0 {
			asked = []oauthapi.ConsentScope{{}} // to log in
		}
	}
	if always || len(asked) == 0 {
		return asked, nil
	}
	given, err := p.Store.ConsentOf(ctx, id.Ref{Tenant: f.TenantID, ID: f.AccountID}, r.Client.ID)
	if err != nil && !errors.Is(err, apierr.NotFound) {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(asked), func(scope oauthapi.ConsentScope) bool {
		return slices.Contains(given.Scopes, scope.Name)
	}), nil
}

// Consent is what the consent page shows.
type Consent struct {
	Application applicationapi.Application
	Client      oauthapi.OpenIDClient
	Scopes      []oauthapi.ConsentScope
	Login       string // user name of the account
	Device      bool   // a device asks
	Secret      secure.Secret
}

// Consent returns what the consent page of a login shows. It returns errLogin for a login that has not ended, or
// whose request was answered.
func (p *Provider) Consent(ctx context.Context, application, flow id.ID, in journey.BrowserRequest) (Consent, error) {
	f, err := p.decidable(ctx, application, flow, in)
	if err != nil {
		return Consent{}, err
	}
	ctx = caller.WithTenant(ctx, f.TenantID)
	out := Consent{Client: f.OpenIDRequest.Client, Device: f.OpenIDRequest.UserCode != "",
		Secret: formSecret(in.Browsers.Of(f.Browser))}
	if out.Scopes, err = p.missingConsent(ctx, f); err != nil {
		return out, err
	}
	if out.Application, err = p.Peers.Application.Application(ctx, id.Ref{Tenant: f.TenantID, ID: f.ApplicationID}); err != nil {
		return out, err
	}
	account, err := p.Peers.Directory.Account(ctx, id.Ref{Tenant: f.TenantID, ID: f.AccountID})
	out.Login = account.Username
	return out, err
}

// decidable returns a login that has ended and whose user may be asked now.
func (p *Provider) decidable(ctx context.Context, application, flow id.ID,
	in journey.BrowserRequest) (store.Flow, error) {
	f, err := p.flow(ctx, application, flow, in)
	if err == nil && (f.FinishedAt == nil || f.AccountID.IsZero() || !p.Now().Before(f.ExpiresAt)) {
		err = errLogin
	}
	return f, err
}

// errForm is the error for a form that no page of this service has shown to the browser.
var errForm = apierr.Forbidden.Because("the form is not that of a page of this service; reload the page")

// Decide answers the consent page: the user has allowed or refused what it has shown.
func (p *Provider) Decide(ctx context.Context, application, flow id.ID, allowed bool, secret secure.Secret,
	in journey.BrowserRequest) (journey.Redirect, error) {
	f, err := p.decidable(ctx, application, flow, in)
	if err != nil {
		return journey.Redirect{}, err
	}
	if !isFormSecret(secret, in.Browsers.Of(f.Browser)) {
		return journey.Redirect{}, errForm
	}
	ctx = caller.WithTenant(ctx, f.TenantID)
	if !allowed {
		return p.answer(ctx, f, errDenied)
	}
	now := p.Now()
	if err := p.Store.Tx(ctx, func(tx *store.Tx) error {
		tx.PutConsent(store.Consent{
			TenantID: f.TenantID, ID: id.New(now), AccountID: f.AccountID, ClientID: f.OpenIDRequest.Client.ID,
			ApplicationID: f.ApplicationID, Scopes: f.OpenIDRequest.Scopes, CreatedAt: now, ModifiedAt: now,
		})
		return nil
	}); err != nil {
		return journey.Redirect{}, err
	}
	return p.issue(ctx, f)
}
