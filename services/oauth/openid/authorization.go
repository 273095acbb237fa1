package openid

import (
	"context"
	"errors"
	"slices"
	"strconv"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/oauthapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/services/oauth/claimsparameter"
	"github.com/doorward/doorward/services/oauth/relyingparty"
	"github.com/doorward/doorward/services/oauth/store"
)

const (
	modeQuery    = "query"
	modeFormPost = "form_post"

	promptNone    = "none"
	promptConsent = "consent"
)

var prompts = []string{promptNone, "login", promptConsent, "select_account", "create"}

// maxAge bounds the parameter max_age; a longer one counts as it.
const maxAge = 1<<31 - 1 // seconds

// authorizationRequest is an authorization request of a client whose parameters were read.
type authorizationRequest struct {
	issuer
	parameters
	client   store.OpenIDClient
	repeated []string // names of parameters that were sent more than once
	signed   bool     // the parameters are those of a signed request object
	pushed   []byte   // digest of the request_uri by which they were found; nil: they were not pushed
	jkt      string   // of the proof with which they were pushed
}

// Authorization checks an authorization request. The client and the redirect URI come first: only what passes them
// may be sent there.
func (s *Service) Authorization(ctx context.Context, in oauthapi.AskAuthorization) (oauthapi.Authorization, error) {
	i, err := s.issuer(ctx, in.Application)
	if err != nil {
		return oauthapi.Authorization{}, err
	}
	sent, repeated := readParameters(in.Parameters, authorizationParameters)
	r := authorizationRequest{issuer: i, parameters: sent, repeated: repeated}
	if r.client, err = s.requestingClient(ctx, i, sent["client_id"]); err != nil {
		return oauthapi.Authorization{}, err
	}
	if err := s.resolve(ctx, &r); err != nil {
		// The parameters beside a request that cannot be read may say where its error is sent.
		outer := authorizationRequest{issuer: i, parameters: sent, repeated: repeated, client: r.client}
		return outer.refuse(err)
	}
	out, err := r.addressed()
	if err != nil {
		return out, err
	}
	if err := s.checkAuthorization(ctx, r, &out); err != nil {
		return refused(out, err)
	}
	out.OtherAccount = !in.Account.IsZero() && out.HintSubject != "" &&
		r.subject(r.client, in.Account) != out.HintSubject
	return out, nil
}

// requestingClient returns the client of an authorization request, or apierr.BadRequest.
func (s *Service) requestingClient(ctx context.Context, i issuer, clientID string) (store.OpenIDClient, error) {
	if clientID == "" {
		return store.OpenIDClient{}, refuse("invalid_request", "client_id is missing or is sent more than once")
	}
	client, err := s.findClient(ctx, i, clientID)
	if errors.Is(err, apierr.Unauthorized) && relyingparty.IsDocument(clientID) {
		return client, refuse("invalid_request", "%s", apierr.From(err).Reason)
	}
	if errors.Is(err, apierr.Unauthorized) {
		return client, refuse("invalid_request", "client_id names no client of the application that is enabled")
	}
	if err != nil {
		return client, err
	}
	return client, checkGrantType(client, relyingparty.GrantCode)
}

// resolve replaces the parameters of a request by those that were pushed (RFC 9126, section 4) or signed (RFC 9101,
// section 6.3), where it names such.
func (s *Service) resolve(ctx context.Context, r *authorizationRequest) error {
	_, hasObject := r.parameters["request"]
	_, hasURI := r.parameters["request_uri"]
	switch {
	case slices.Contains(r.repeated, "request") || slices.Contains(r.repeated, "request_uri") || hasObject && hasURI:
		return refuse("invalid_request", "request and request_uri exclude each other, and are sent once")
	case hasURI:
		return s.readPushed(ctx, r)
	case hasObject:
		return s.readObject(ctx, r)
	}
	return nil
}

// addressed returns what the answer to a request needs, or the error that a page must show.
func (r authorizationRequest) addressed() (out oauthapi.Authorization, err error) {
	out = oauthapi.Authorization{
		Tenant: r.app.TenantID, Application: r.app.ID, Issuer: r.url, Client: clientOf(r.client, r.url),
		ResponseMode: modeQuery, State: r.parameters["state"], Scopes: []string{},
	}
	if r.parameters["response_mode"] == modeFormPost {
		out.ResponseMode = modeFormPost
	}
	out.RedirectURI, out.RedirectURINamed, err = redirectOf(r.client, r.parameters, r.repeated)
	return out, err
}

// refuse is the answer to a request with an error, at its redirect URI if it names a registered one; else it returns
// the error.
func (r authorizationRequest) refuse(cause error) (oauthapi.Authorization, error) {
	out, err := r.addressed()
	if err != nil || !out.RedirectURINamed {
		return out, cause
	}
	return refused(out, cause)
}

// refused adds an error to an authorization, if it is one of an authorization response. Any other is returned.
func refused(out oauthapi.Authorization, err error) (oauthapi.Authorization, error) {
	refusal := apierr.From(err)
	code, _ := refusal.Fields["error"].(string)
	if !apierr.IsRefusal(err) || code == "" {
		return out, err
	}
	out.Refusal = &oauthapi.AuthorizationError{Error: code, Description: refusal.Description()}
	return out, nil
}

// checkAuthorization checks what a request asks for, and writes it into out.
func (s *Service) checkAuthorization(ctx context.Context, r authorizationRequest, out *oauthapi.Authorization) error {
	if err := r.checkFlow(out); err != nil {
		return err
	}
	if err := r.checkScopes(out); err != nil {
		return err
	}
	if err := r.checkLogin(out); err != nil {
		return err
	}
	return s.checkHints(ctx, r, out)
}

// checkFlow checks how a request was sent and how its answer is: the parameters of OAuth.
func (r authorizationRequest) checkFlow(out *oauthapi.Authorization) error {
	p, v := r.parameters, r.client.Settings
	challenge, method := p["code_challenge"], p["code_challenge_method"]
	switch mode := p["response_mode"]; {
	case len(r.repeated) > 0:
		return refuse("invalid_request", "%s is sent more than once", r.repeated[0])
	case v.RequirePushedAuthorizationRequests && r.pushed == nil:
		return refuse("invalid_request", "the client must push its authorization requests (RFC 9126)")
	case v.RequireSignedRequestObject && !r.signed:
		return refuse("invalid_request", "the client must sign its authorization requests (RFC 9101)")
	case r.isFAPI() && !out.RedirectURINamed:
		return refuse("invalid_request", "redirect_uri is missing (FAPI 2.0)")
	case p["response_type"] == "":
		return refuse("invalid_request", "response_type is missing")
	case p["response_type"] != "code":
		return refuse("unsupported_response_type", "response_type must be code")
	case mode != "" && mode != modeQuery && mode != modeFormPost:
		return refuse("invalid_request", "response_mode must be %s or %s", modeQuery, modeFormPost)
	case challenge == "" && (v.RequirePKCE || method != ""):
		return refuse("invalid_request", "code_challenge is missing")
	case challenge != "" && (method != "S256" || !isChallenge(challenge)):
		return refuse("invalid_request", "%s, and code_challenge_method S256", errChallenge)
	case p["dpop_jkt"] != "" && (!isChallenge(p["dpop_jkt"]) || r.jkt != "" && r.jkt != p["dpop_jkt"]):
		return refuse("invalid_request", "dpop_jkt must be the SHA-256 thumbprint of the key of the proofs, in base64url")
	}
	if err := p.check(); err != nil {
		return err
	}
	out.CodeChallenge, out.Nonce, out.DPoPKey, out.Pushed = challenge, p["nonce"], p["dpop_jkt"], r.pushed
	if r.jkt != "" {
		out.DPoPKey = r.jkt
	}
	return nil
}

const errChallenge = "code_challenge must be the SHA-256 of the verifier in base64url"

// checkScopes checks the scopes and the resource, and finds the scopes that the user is asked for.
func (r authorizationRequest) checkScopes(out *oauthapi.Authorization) (err error) {
	if out.Resource, err = r.target(r.parameters["resource"]); err != nil {
		return err
	}
	asks := r.client.Settings.Consent == relyingparty.ConsentRequired
	if out.Scopes, err = r.allowedScopes(r.client, r.parameters["scope"], out.Resource, asks); err != nil {
		return err
	}
	if asks && len(out.Scopes) == 0 {
		return refuse("invalid_scope", "the request names no scope that the client may have")
	}
	asks = asks || slices.Contains(r.words("prompt"), promptConsent)
	out.Consent = r.consent(out.Scopes, asks)
	return nil
}

// consent returns the scopes that the user is asked for: all, or those that are always asked for.
func (i issuer) consent(scopes []string, all bool) (asked []oauthapi.ConsentScope) {
	for _, name := range scopes {
		scope, _ := i.scope(name)
		if !all && !scope.Consent {
			continue
		}
		v := oauthapi.ConsentScope{Name: name}
		if scope.Description != nil {
			v.Description = *scope.Description
		}
		asked = append(asked, v)
	}
	return asked
}

// checkLogin checks what a request demands of the login.
func (r authorizationRequest) checkLogin(out *oauthapi.Authorization) error {
	p := r.parameters
	out.Prompt, out.LoginHint, out.UILocales = r.words("prompt"), p["login_hint"], r.words("ui_locales")
	out.Organization, out.AccountStore = p["organization"], p["account_store"]
	for _, prompt := range out.Prompt {
		if !slices.Contains(prompts, prompt) {
			return refuse("invalid_request", "prompt has the value %q", prompt)
		}
	}
	if slices.Contains(out.Prompt, promptNone) && len(out.Prompt) > 1 {
		return refuse("invalid_request", "prompt none stands alone")
	}
	out.MaxAge = r.client.Settings.DefaultMaxAge
	if text := p["max_age"]; text != "" {
		age, err := strconv.ParseUint(text, 10, 64)
		if err != nil && !errors.Is(err, strconv.ErrRange) {
			return refuse("invalid_request", "max_age must be a number of seconds")
		}
		seconds := int(min(age, maxAge))
		out.MaxAge = &seconds
	}
	if out.ACRValues = r.words("acr_values"); out.ACRValues == nil {
		out.ACRValues = slices.Clone(r.client.Settings.DefaultACRValues)
	}
	if len(out.ACRValues) > relyingparty.MaxList || len(out.UILocales) > relyingparty.MaxList {
		return refuse("invalid_request", "acr_values and ui_locales have at most %d values", relyingparty.MaxList)
	}
	return nil
}

// checkHints checks the parameters claims and id_token_hint, each of which may name the account of the login.
func (s *Service) checkHints(ctx context.Context, r authorizationRequest, out *oauthapi.Authorization) error {
	claims, err := claimsparameter.Parse(r.parameters["claims"])
	if err != nil {
		return err
	}
	if acr := claims.IDToken["acr"]; len(acr.Texts()) > 0 {
		out.ACRValues, out.ACRRequired = acr.Texts(), acr.Essential
	}
	subjects := claims.IDToken["sub"].Texts()
	if text := r.parameters["id_token_hint"]; text != "" {
		hint, err := s.readHint(ctx, r.issuer, text)
		if err != nil {
			return err
		}
		if !slices.Contains(hint.audience, r.client.ClientID) {
			return refuse("invalid_request", "id_token_hint is of another client")
		}
		subjects = append(subjects, hint.subject)
	}
	if slices.Sort(subjects); len(slices.Compact(subjects)) > 1 {
		return refuse("invalid_request", "id_token_hint and claims name different subjects")
	}
	if len(subjects) > 0 {
		out.HintSubject = subjects[0]
	}
	out.Claims = claims.Names()
	return nil
}

// clientOf returns a client of an issuer as pages show it.
func clientOf(c store.OpenIDClient, issuer string) oauthapi.OpenIDClient {
	v := c.Settings
	text := func(p *string) string {
		if p == nil {
			return ""
		}
		return *p
	}
	return oauthapi.OpenIDClient{
		ID: c.ID, ClientID: c.ClientID, Application: c.ApplicationID, Issuer: issuer, Name: c.Name,
		LogoURI: text(v.LogoURI), ClientURI: text(v.ClientURI), PolicyURI: text(v.PolicyURI), TosURI: text(v.TosURI),
		InitiateLoginURI: text(v.InitiateLoginURI), FrontchannelLogoutURI: text(v.FrontchannelLogoutURI),
		BackchannelLogoutURI: text(v.BackchannelLogoutURI),
	}
}

// OpenIDClients returns clients of a tenant by their ids.
func (s *Service) OpenIDClients(ctx context.Context, in oauthapi.AskOpenIDClients) (oauthapi.OpenIDClients, error) {
	found, err := s.Store.OpenIDClientsByID(ctx, in.Tenant, in.Clients)
	out := oauthapi.OpenIDClients{Items: []oauthapi.OpenIDClient{}}
	for _, c := range found {
		of := applicationapi.Application{TenantID: c.TenantID, ID: c.ApplicationID}
		p, err := s.Store.CachedOpenIDProvider(ctx, id.Ref{Tenant: of.TenantID, ID: of.ID})
		if p, err = orDefault(of, p, err); err == nil {
			p, err = s.withIssuer(ctx, p)
		}
		if err != nil {
			return out, err
		}
		out.Items = append(out.Items, clientOf(c, p.Issuer))
	}
	return out, err
}
