package idsite

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/redirecturi"
	"github.com/doorward/doorward/pkg/saml"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/idsite/store"
)

// Logins and logouts at SAML identity providers: this deployment is the SAML service provider.
// Responses are verified in services/directory/provider/samllogin.go. The deployment as a SAML identity
// provider is in samlsignon.go.

// samlLoginTTL is how long a login at an identity provider may take.
const samlLoginTTL = 30 * time.Minute

// BeginSAML answers GET {app}/saml/sso/idpRedirect: it begins a login at the identity provider of a
// directory (SP-initiated) for a token that a client has signed
// (docs/interface/applications.md#saml-policy). It returns the address of the identity provider
// with an AuthnRequest.
func (s *Service) BeginSAML(ctx context.Context, application id.ID, token secure.Secret) (string, error) {
	r, err := s.verifySAMLInitiation(ctx, application, token)
	if err != nil {
		return "", err
	}
	ctx = caller.WithTenant(ctx, r.tenant)
	if err := r.validate(s.now()); err != nil {
		return "", err
	}
	if r.callback, err = chooseCallback(r.application, r.stringClaim("cb_uri")); err != nil {
		return "", err
	}
	directory, err := s.samlDirectory(ctx, r.accountStore(), r.stringClaim("ash"))
	if err != nil {
		return "", err
	}
	now, where := s.now(), r.accountStore()
	state, stateJSON := r.state()
	flow := store.Flow{
		TenantID: r.tenant, ID: id.New(now), ApplicationID: r.application.ID, KeyID: r.key, RequestID: r.stringClaim("jti"),
		CallbackURI: r.callback,
		State:       state, StateJSON: stateJSON, NameKey: where.NameKey, AccountStore: where.AccountStore.Href, FactorTypes: []string{},
		CreatedAt: now, ExpiresAt: now.Add(samlLoginTTL),
	}
	if err := s.insertFlow(ctx, flow); err != nil {
		return "", err
	}
	return s.samlRedirect(ctx, flow, directory, relayLogin)
}

// verifySAMLInitiation verifies the token (accessToken) that begins a login. Its issuer is the
// application, or the API key that has signed it, with the application as the subject.
func (s *Service) verifySAMLInitiation(ctx context.Context, application id.ID, token secure.Secret) (r request, err error) {
	verified, err := s.verifySignature(ctx, "accessToken", token)
	if err == nil {
		r, err = parseRequest("accessToken", verified, verified.Claims)
	}
	if err != nil {
		return r, err
	}
	if r.claims["err"] != nil { // an error assertion, which this service signs without stt
		return r, apierr.BadRequest.Because("accessToken is a token of another kind: its claims have err")
	}
	ctx = caller.WithTenant(ctx, r.tenant)
	issuer := r.stringClaim("iss")
	if issuer == r.key {
		issuer = r.stringClaim("sub")
	}
	ref, ok := s.cfg.Base.Parse(issuer)
	if !ok || ref.Kind != "applications" || ref.ID != application {
		return r, apierr.BadRequest.Because("iss must be the href of the application, or the id of the API key with the href as sub")
	}
	r.application, err = s.peers.Application.Application(ctx, id.Ref{Tenant: r.tenant, ID: application})
	return r, err
}

// chooseCallback returns the callback of a SAML login: the requested one, if
// authorizedCallbackUris of the application lists it (open redirect), or the first of these
// without a wildcard.
func chooseCallback(a applicationapi.Application, requested string) (string, error) {
	switch {
	case requested != "" && redirecturi.IsListed(requested, a.AuthorizedCallbackURIs):
		return requested, nil
	case len(a.AuthorizedCallbackURIs) == 0:
		return "", apierr.NoCallback.Because("the application has no authorizedCallbackUris; add the address to return to")
	case requested != "":
		return "", apierr.CallbackNotListed.Because("the callback %q is none of the application's authorizedCallbackUris", requested)
	}
	for _, uri := range a.AuthorizedCallbackURIs {
		if !strings.Contains(uri, "*") {
			return uri, nil
		}
	}
	return "", apierr.CallbackWildcardsOnly.Because("every one of authorizedCallbackUris has a wildcard; add one without, or send cb_uri")
}

// samlDirectory returns the SAML directory of a login: that of the named account store, or the
// first SAML directory in the order of login.
func (s *Service) samlDirectory(ctx context.Context, where applicationapi.LoginTarget, named string) (id.ID, error) {
	stores, err := s.loginStores(ctx, where)
	if err != nil {
		return id.ID{}, err
	}
	candidates := stores.Directories
	ref, known := s.cfg.Base.Parse(named)
	if named != "" && !known {
		return id.ID{}, apierr.Reference.Because("there is no account store at %q", named)
	}
	if ref.Kind == "directories" {
		if !slices.Contains(candidates, ref.ID) {
			return id.ID{}, apierr.NotMapped.Because("the account store %q is not mapped to the application or its organization", named)
		}
		candidates = []id.ID{ref.ID}
	}
	list, err := s.peers.Directory.LoginDirectories(ctx, directoryapi.LoginDirectories{Tenant: where.Tenant, Directories: candidates})
	if err != nil {
		return id.ID{}, err
	}
	for _, d := range list.Items {
		if d.ProviderID == "saml" && (d.Status == directoryapi.Enabled || named != "") {
			return d.ID, nil
		}
	}
	if named != "" {
		return id.ID{}, apierr.NotSAML.Because("the account store %q is not a SAML directory and leads to none", named)
	}
	return id.ID{}, apierr.Reference.Because("no SAML directory is mapped to the application")
}

// samlRedirect returns the address of an identity provider with an AuthnRequest and a RelayState, which
// leads the response to its flow.
func (s *Service) samlRedirect(ctx context.Context, f store.Flow, directory id.ID, purpose relayPurpose) (string, error) {
	relay := s.newRelayState(f, purpose, directory)
	to, err := s.peers.Directory.BeginSAMLLogin(ctx, directoryapi.BeginSAMLLogin{
		Tenant: f.TenantID, Directory: directory, RequestID: samlRequestID(relay), RelayState: relay,
	})
	return to.Location, err
}

// samlCallback is what the RelayState of a SAML response tells: to which flow the response
// belongs.
type samlCallback struct {
	flow              store.Flow
	requestID         string // of the AuthnRequest; "": the login is IdP-initiated
	isHosted          bool   // the flow began at the hosted pages
	isCallbackTrusted bool   // this service has signed the callback, so that errors may go there
}

// FinishSAML answers POST /directories/{id}/saml/sso/post, the assertion consumer service (ACS): it
// takes a SAML response with its RelayState, logs the user in, and returns the address where the
// browser goes. An error goes to the callback, if that can be trusted.
func (s *Service) FinishSAML(ctx context.Context, directory id.ID, response, relay secure.Secret) (string, error) {
	from, err := s.readRelayState(ctx, directory, relay)
	if err != nil {
		return "", err
	}
	ctx = caller.WithTenant(ctx, from.flow.TenantID)
	location, err := s.finishSAML(ctx, directory, from, response)
	if err != nil && from.isCallbackTrusted {
		return s.errorRedirect(ctx, from.flow, err)
	}
	return location, err
}

// readRelayState returns the flow to which the RelayState of a SAML response leads. The RelayState
// is one of this service (relaystate.go); or in an IdP-initiated login a default RelayState of the
// application, an address, or empty. Its callback is always one that the application lists (open
// redirect).
func (s *Service) readRelayState(ctx context.Context, directory id.ID, relay secure.Secret) (from samlCallback, err error) {
	purpose, flow, err := s.readRelayHandle(ctx, relay, directory)
	switch {
	case errors.Is(err, errNotServiceToken) && (relay == "" || strings.Contains(relay.Reveal(), ":")):
		return s.idpInitiated(ctx, directory, relay.Reveal())
	case errors.Is(err, errNotServiceToken):
		return s.idpInitiatedByRelayState(ctx, relay)
	case errors.Is(err, apierr.NotFound), err == nil && purpose != relayLogin && purpose != relayHostedLogin:
		return from, apierr.SAMLMalformed.Because("the RelayState is of a login that has ended; begin again")
	case err != nil:
		return from, err
	}
	if flow.KeyID == "" && flow.SAMLRequest == nil { // began at /authorize, which returns its state in the query too
		flow.CallbackURI = withState(flow.CallbackURI, flow.State)
	}
	return samlCallback{flow: flow, isCallbackTrusted: true, requestID: samlRequestID(relay), isHosted: purpose == relayHostedLogin}, nil
}

// idpInitiated returns the flow of an IdP-initiated login without a RelayState of this service. It leads
// to the requested callback, if an application of the directory lists it, else to the default callback of
// the oldest application.
func (s *Service) idpInitiated(ctx context.Context, directory id.ID, requested string) (from samlCallback, err error) {
	of, err := s.peers.Directory.SAMLTenant(ctx, directoryapi.SAMLDirectory{Directory: directory})
	if errors.Is(err, apierr.NotFound) {
		err = apierr.NotSAML.Because("there is no SAML directory %q", s.cfg.Base.To("directories", directory))
	}
	if err != nil {
		return from, err
	}
	application, err := s.peers.Application.SAMLApplication(caller.WithTenant(ctx, of.Tenant), applicationapi.SAMLApplication{
		Directory: id.Ref{Tenant: of.Tenant, ID: directory}, CallbackURI: requested,
	})
	if errors.Is(err, apierr.NotFound) {
		err = apierr.Reference.Because("the directory is not mapped to an application")
	}
	if err != nil {
		return from, err
	}
	if requested != "" && !redirecturi.IsListed(requested, application.AuthorizedCallbackURIs) {
		requested = ""
	}
	callback, err := chooseCallback(application, requested)
	from.flow = s.idpInitiatedFlow(application, callback)
	return from, err
}

// idpInitiatedByRelayState returns the flow of an IdP-initiated login with a default RelayState,
// a token that the application service has signed.
func (s *Service) idpInitiatedByRelayState(ctx context.Context, relay secure.Secret) (from samlCallback, err error) {
	to, err := s.peers.Application.SAMLRelayState(ctx, applicationapi.SAMLRelayState{Token: relay})
	if err != nil {
		return from, err
	}
	callback, err := chooseCallback(to.Application, to.CallbackURI)
	if err != nil {
		return from, err
	}
	from.flow, from.isCallbackTrusted = s.idpInitiatedFlow(to.Application, callback), true
	from.flow.State, from.flow.AccountStore = to.State, to.AccountStore.Href
	return from, nil
}

// idpInitiatedFlow returns a flow that is not stored, because no request has begun it.
func (s *Service) idpInitiatedFlow(a applicationapi.Application, callback string) store.Flow {
	now := s.now()
	return store.Flow{TenantID: a.TenantID, ID: id.New(now), ApplicationID: a.ID, CallbackURI: callback, CreatedAt: now,
		ExpiresAt: now.Add(samlLoginTTL)}
}

// finishSAML verifies a SAML response, logs its user in, and returns where the browser goes.
func (s *Service) finishSAML(ctx context.Context, directory id.ID, from samlCallback, response secure.Secret) (string, error) {
	f := from.flow
	if f.FinishedAt != nil || !s.now().Before(f.ExpiresAt) {
		return "", apierr.SAMLMalformed.Because("the login has ended already, or has taken longer than allowed; begin again")
	}
	if err := s.checkSAMLDirectory(ctx, f, directory); err != nil {
		return "", err
	}
	login, err := s.peers.Directory.FinishSAMLLogin(ctx, directoryapi.FinishSAMLLogin{
		Tenant: f.TenantID, Directory: directory, Application: f.ApplicationID, RequestID: from.requestID, Response: response,
	})
	if err != nil {
		return "", err
	}
	where := accountStoreOf(f)
	admitted, err := s.peers.Application.CompleteLogin(ctx, applicationapi.CompleteLogin{
		Tenant: f.TenantID, Application: f.ApplicationID, Account: login.Account.ID, AccountStore: where.AccountStore, NameKey: where.NameKey,
		FreshAccount: &login.Account,
	})
	if err != nil {
		return "", err
	}
	f = f.WithAccount(admitted.Account, admitted.Organization)
	f.SAMLSession = &login.Session
	// Account linking may have created a second account, a copy in the default account store:
	// the user is new if the copy is not older than the account of the directory.
	isNew := login.IsNew && !admitted.Account.CreatedAt.Before(login.Account.CreatedAt)
	switch {
	case from.isHosted:
		site, err := s.store.TenantSite(ctx, f.TenantID)
		if err != nil {
			return "", err
		}
		page := &PageAPI{s, f, site}
		return page.finishExternalLogin(ctx, admitted, isNew)
	case from.requestID == "":
		f.RequestID = login.ResponseID
	default:
		now := s.now()
		err := s.store.Tx(ctx, func(tx *store.Tx) error { return tx.FinishFlow(ctx, f, now) })
		if errors.Is(err, apierr.NotFound) {
			err = errSessionEnded
		}
		if err != nil {
			return "", err
		}
	}
	return s.assertionRedirect(ctx, f, store.Site{}, id.New(s.now()).String(), outcome{
		status: authenticated, account: f.AccountID, isNew: isNew, issuer: s.cfg.Base.To("applications", f.ApplicationID),
	})
}

// checkSAMLDirectory refuses a login to an application that is disabled, or through a directory
// that is not mapped to it, before an account is created.
func (s *Service) checkSAMLDirectory(ctx context.Context, f store.Flow, directory id.ID) error {
	where := accountStoreOf(f)
	stores, err := s.loginStores(ctx, where)
	if err != nil {
		return err
	}
	if stores.Status != directoryapi.Enabled {
		return apierr.TokenApplicationDisabled.Because("the application is disabled")
	}
	named, _ := s.cfg.Base.Parse(where.AccountStore.Href)
	if named.Kind != "groups" && !slices.Contains(stores.Directories, directory) {
		return apierr.NotMapped.Because("the directory %q is not mapped to the application", s.cfg.Base.To("directories", directory))
	}
	return nil
}

// BeginSAML begins the SAML login of a button on a hosted page. It returns the address of the
// identity provider of a directory.
func (p *PageAPI) BeginSAML(ctx context.Context, application id.ID, named string) (string, error) {
	if err := p.checkApplication(application); err != nil {
		return "", err
	}
	directory, err := p.svc.samlDirectory(ctx, accountStoreOf(p.flow), cmp.Or(named, p.flow.AccountStore))
	if err != nil {
		return "", err
	}
	return p.svc.samlRedirect(ctx, p.flow, directory, relayHostedLogin)
}

// samlLogout begins a single logout (SLO): it returns the address of the identity provider with a
// LogoutRequest, or "" where the user has no session there. The session of this service has
// ended already, so that a failure is only logged.
func (s *Service) samlLogout(ctx context.Context, f store.Flow, session store.Session) string {
	if session.SAMLSession == nil {
		return ""
	}
	to, err := s.peers.Directory.SAMLLogout(ctx, directoryapi.SAMLLogout{
		Tenant: f.TenantID, Session: *session.SAMLSession, RelayState: s.newRelayState(f, relayLogout, id.ID{}),
	})
	if err != nil && !errors.Is(err, apierr.NotSAML) {
		slog.WarnContext(ctx, "sending a logout to the identity provider failed", "error", err.Error())
	}
	return to.Location
}

// FinishSAMLLogout answers /sso/logout with RelayState and SAMLResponse, the end of a single
// logout (SLO): the identity provider has sent the browser back. It returns the callback of the
// logout. The session of this service has ended already, so that a failure of the identity
// provider is only logged.
func (s *Service) FinishSAMLLogout(ctx context.Context, relay, response secure.Secret) (string, error) {
	purpose, f, err := s.readRelayHandle(ctx, relay, id.ID{})
	if errors.Is(err, errNotServiceToken) || errors.Is(err, apierr.NotFound) || err == nil && purpose != relayLogout {
		return "", apierr.BadRequest.Because("the RelayState is not that of a logout of this service")
	}
	if err != nil {
		return "", err
	}
	ctx = caller.WithTenant(ctx, f.TenantID)
	if !s.now().Before(f.CreatedAt.Add(samlLoginTTL)) {
		return "", apierr.BadRequest.Because("the logout at the identity provider has taken longer than allowed")
	}
	if err := saml.ReadLogoutResponse(response.Reveal()); err != nil {
		slog.WarnContext(ctx, "logout not confirmed by the identity provider", "tenant", f.TenantID.String(), "error", err.Error())
	}
	site, err := s.store.TenantSite(ctx, f.TenantID)
	if err != nil {
		return "", err
	}
	return s.assertionRedirect(ctx, f, site, id.New(s.now()).String(), outcome{status: loggedOut, account: f.AccountID})
}
