package openid

import (
	"context"
	"errors"
	"net/url"

	"github.com/doorward/doorward/pkg/api/oauthapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/services/idsite/journey"
	"github.com/doorward/doorward/services/idsite/store"
)

// complete goes on after the login of a flow has ended: to the consent page where the user must be asked, else to the
// relying party.
func (p *Provider) complete(ctx context.Context, f store.Flow) (journey.Redirect, error) {
	r := f.OpenIDRequest
	asked, err := p.missingConsent(ctx, f)
	switch {
	case err != nil:
		return journey.Redirect{}, err
	case len(asked) == 0:
		return p.issue(ctx, f)
	case r.Asks("none"):
		return p.answer(ctx, f, oauthapi.AuthorizationError{Error: "consent_required",
			Description: "the user must allow what is asked for"})
	}
	return journey.Redirect{Location: p.address(f.ApplicationID, "/consent?flow="+f.ID.String())}, nil
}

// issue answers a request whose login and consent are there: with a code, once.
func (p *Provider) issue(ctx context.Context, f store.Flow) (journey.Redirect, error) {
	r := *f.OpenIDRequest
	if err := p.consume(ctx, f); err != nil {
		return journey.Redirect{}, err
	}
	login := loginOf(f)
	if r.UserCode != "" {
		to, err := p.answerDevice(ctx, r, &login)
		if err != nil {
			return to, err
		}
		return to, p.addClient(ctx, f)
	}
	issued, err := p.Peers.OAuth.IssueCode(ctx, oauthapi.IssueCode{
		Tenant: f.TenantID, Application: f.ApplicationID, ClientID: r.Client.ClientID, RedirectURI: r.RedirectURI,
		RedirectURINamed: r.RedirectURINamed, CodeChallenge: r.CodeChallenge, Scopes: r.Scopes, Resource: r.Resource,
		Nonce: r.Nonce, DPoPKey: r.DPoPKey, Claims: r.Claims, Pushed: r.Pushed, HintSubject: r.HintSubject, Login: login,
	})
	if apierr.IsRefusal(err) {
		return respond(r.Authorization, errorValues(errorOf(err))), nil
	}
	if err != nil {
		return journey.Redirect{}, err
	}
	return respond(r.Authorization, url.Values{"code": {issued.Code.Reveal()}}), p.addClient(ctx, f)
}

// addClient adds the client of a login to its session: it is told of the session's end.
func (p *Provider) addClient(ctx context.Context, f store.Flow) error {
	if f.SessionID.IsZero() {
		return nil
	}
	return p.Store.Tx(ctx, func(tx *store.Tx) error {
		tx.InsertSessionClient(store.SessionClient{TenantID: f.TenantID, SessionID: f.SessionID,
			ClientID: f.OpenIDRequest.Client.ID})
		return nil
	})
}

// loginOf is what the tokens say of the login of a flow that has ended.
func loginOf(f store.Flow) oauthapi.Login {
	login := oauthapi.Login{Account: f.AccountID, Organization: f.OrganizationID, AuthenticatedAt: f.ProvedAt()}
	if !f.SessionID.IsZero() {
		login.Session = f.SessionID.String()
	}
	login.ACR, login.AMR = journey.AuthenticationContext(f.ByPassword, f.FactorPassed, f.FactorType)
	return login
}

// answer answers a request with an error, once.
func (p *Provider) answer(ctx context.Context, f store.Flow,
	refusal oauthapi.AuthorizationError) (journey.Redirect, error) {
	if err := p.consume(ctx, f); err != nil {
		return journey.Redirect{}, err
	}
	if f.OpenIDRequest.UserCode != "" {
		return p.answerDevice(ctx, *f.OpenIDRequest, nil)
	}
	return respond(f.OpenIDRequest.Authorization, errorValues(refusal)), nil
}

// consume records that a request is answered. It returns errLogin for one that was before.
func (p *Provider) consume(ctx context.Context, f store.Flow) error {
	err := p.Store.Tx(ctx, func(tx *store.Tx) error {
		tx.ConsumeOpenIDRequest(f, p.Now())
		return nil
	})
	if errors.Is(err, apierr.NotFound) {
		return errLogin
	}
	return err
}

// respond returns the authorization response to a relying party (RFC 6749, section 4.1.2), with the state of the
// request and the issuer (RFC 9207), by the response mode that it has asked for.
func respond(a oauthapi.Authorization, values url.Values) journey.Redirect {
	values.Set("iss", a.Issuer)
	if a.State != "" {
		values.Set("state", a.State)
	}
	if a.ResponseMode == "form_post" {
		return journey.Redirect{Location: a.RedirectURI, Form: values}
	}
	return journey.Redirect{Location: journey.WithParameters(a.RedirectURI, values)}
}

func errorValues(e oauthapi.AuthorizationError) url.Values {
	values := url.Values{"error": {e.Error}}
	if e.Description != "" {
		values.Set("error_description", e.Description)
	}
	return values
}

// errorOf is the error of an authorization response for a refusal of a rule.
func errorOf(err error) oauthapi.AuthorizationError {
	e := apierr.From(err)
	code, ok := e.Fields["error"].(string)
	if !ok {
		code = "invalid_request"
	}
	return oauthapi.AuthorizationError{Error: code, Description: e.Reason}
}
