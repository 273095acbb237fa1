package journey

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
	"github.com/doorward/doorward/services/idsite/servicetoken"
	"github.com/doorward/doorward/services/idsite/store"
)

// Logins and logouts at SAML identity providers: this deployment is the SAML service provider.
// Responses are verified in services/directory/provider/samllogin.go.

// SAMLLoginTTL is how long a login at an identity provider may take.
const SAMLLoginTTL = 30 * time.Minute

// NewSAMLFlow returns a login in progress for the login at an identity provider. The caller says the rest of it.
func (j *Journey) NewSAMLFlow(application id.Ref) store.Flow {
	now := j.now()
	flow := id.New(now)
	return store.Flow{
		TenantID: application.Tenant, ID: flow, ApplicationID: application.ID, RequestID: flow.String(),
		FactorTypes: []string{},
		CreatedAt:   now, ExpiresAt: now.Add(SAMLLoginTTL),
	}
}

// SAMLDirectory returns the SAML directory of a login: that of the named account store, or the
// first SAML directory in the order of login.
func (j *Journey) SAMLDirectory(ctx context.Context, where applicationapi.LoginTarget, named string) (id.ID, error) {
	stores, err := j.Stores(ctx, where)
	if err != nil {
		return id.ID{}, err
	}
	candidates := stores.Directories
	ref, known := j.base.Parse(named)
	if named != "" && !known {
		return id.ID{}, apierr.Reference.Because("there is no account store at %q", named)
	}
	if ref.Kind == "directories" {
		if !slices.Contains(candidates, ref.ID) {
			return id.ID{}, apierr.NotMapped.Because("the account store %q is not mapped to the application or its organization",
				named)
		}
		candidates = []id.ID{ref.ID}
	}
	list, err := j.peers.Directory.LoginDirectories(ctx,
		directoryapi.LoginDirectories{Tenant: where.Tenant, Directories: candidates})
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

// BeginSAML begins the SAML login of a button. It returns the address of the
// identity provider of a directory.
func (l *Login) BeginSAML(ctx context.Context, application id.ID, named string) (string, error) {
	if err := l.CheckApplication(application); err != nil {
		return "", err
	}
	directory, err := l.SAMLDirectory(ctx, Requested(l.Flow), cmp.Or(named, l.Flow.AccountStore))
	if err != nil {
		return "", err
	}
	return l.BeginAtSAML(ctx, l.Flow, directory, true)
}

// BeginAtSAML returns the address of an identity provider with an AuthnRequest and a RelayState, which leads the
// response to its login. isHosted says that the login goes on at a hosted page.
func (j *Journey) BeginAtSAML(ctx context.Context, f store.Flow, directory id.ID, isHosted bool) (string, error) {
	purpose := relayLogin
	if isHosted {
		purpose = relayHostedLogin
	}
	relay := j.newRelayState(f, purpose, directory)
	to, err := j.peers.Directory.BeginSAMLLogin(ctx, directoryapi.BeginSAMLLogin{
		Tenant: f.TenantID, Directory: directory, RequestID: samlRequestID(relay), RelayState: relay,
	})
	return to.Location, err
}

// SAMLCallback is the login to which a SAML response belongs, by its RelayState.
type SAMLCallback struct {
	Flow              store.Flow
	IsHosted          bool   // the login began at the hosted pages
	IsCallbackTrusted bool   // this service has signed the callback, so that errors may go there
	RequestID         string // of the AuthnRequest; "": the login is IdP-initiated
}

// ReadRelayState returns the login to which the RelayState of a SAML response leads. The RelayState
// is one of this service (relaystate.go); or in an IdP-initiated login a default RelayState of the
// application, an address, or empty. Its callback is always one that the application lists (open
// redirect).
func (j *Journey) ReadRelayState(ctx context.Context, directory id.ID, relay secure.Secret) (SAMLCallback, error) {
	purpose, flow, err := j.readRelayHandle(ctx, relay, directory)
	switch {
	case errors.Is(err, servicetoken.ErrInvalid) && (relay == "" || strings.Contains(relay.Reveal(), ":")):
		return j.idpInitiated(ctx, directory, relay.Reveal())
	case errors.Is(err, servicetoken.ErrInvalid):
		return j.idpInitiatedByRelayState(ctx, relay)
	case errors.Is(err, apierr.NotFound):
		return SAMLCallback{}, errRelayStateEnded
	case err != nil:
		return SAMLCallback{}, err
	case purpose != relayLogin && purpose != relayHostedLogin:
		return SAMLCallback{}, errRelayStateEnded
	}
	return SAMLCallback{
		Flow: flow, IsCallbackTrusted: true, IsHosted: purpose == relayHostedLogin, RequestID: samlRequestID(relay),
	}, nil
}

var errRelayStateEnded = apierr.SAMLMalformed.Because("the RelayState is of a login that has ended; begin again")

// idpInitiated returns the login of an IdP-initiated login without a RelayState of this service. It leads
// to the requested callback, if an application of the directory lists it, else to the default callback of
// the oldest application.
func (j *Journey) idpInitiated(ctx context.Context, directory id.ID, requested string) (SAMLCallback, error) {
	of, err := j.peers.Directory.SAMLTenant(ctx, directoryapi.SAMLDirectory{Directory: directory})
	if errors.Is(err, apierr.NotFound) {
		err = apierr.NotSAML.Because("there is no SAML directory %q", j.base.To("directories", directory))
	}
	if err != nil {
		return SAMLCallback{}, err
	}
	ctx = caller.WithTenant(ctx, of.Tenant)
	application, err := j.peers.Application.SAMLApplication(ctx, applicationapi.SAMLApplication{
		Directory: id.Ref{Tenant: of.Tenant, ID: directory}, CallbackURI: requested,
	})
	if errors.Is(err, apierr.NotFound) {
		err = apierr.Reference.Because("the directory is not mapped to an application")
	}
	if err != nil {
		return SAMLCallback{}, err
	}
	if requested != "" && !redirecturi.IsListed(requested, application.AuthorizedCallbackURIs) {
		requested = ""
	}
	return j.idpInitiatedTo(application, requested)
}

// idpInitiatedByRelayState returns the login of an IdP-initiated login with a default RelayState,
// a token that the application service has signed.
func (j *Journey) idpInitiatedByRelayState(ctx context.Context, relay secure.Secret) (SAMLCallback, error) {
	to, err := j.peers.Application.SAMLRelayState(ctx, applicationapi.SAMLRelayState{Token: relay})
	if err != nil {
		return SAMLCallback{}, err
	}
	from, err := j.idpInitiatedTo(to.Application, to.CallbackURI)
	from.IsCallbackTrusted, from.Flow.State, from.Flow.AccountStore = true, to.State, to.AccountStore.Href
	return from, err
}

// idpInitiatedTo returns a login that is not stored, because no request has begun it.
func (j *Journey) idpInitiatedTo(a applicationapi.Application, callback string) (from SAMLCallback, err error) {
	from.Flow = j.NewSAMLFlow(id.Ref{Tenant: a.TenantID, ID: a.ID})
	from.Flow.RequestID = ""
	from.Flow.CallbackURI, err = ChooseCallback(a, callback)
	return from, err
}

// ChooseCallback returns the callback of a SAML login: the requested one, if
// authorizedCallbackUris of the application lists it (open redirect), or the first of these
// without a wildcard.
func ChooseCallback(a applicationapi.Application, requested string) (string, error) {
	switch {
	case requested != "" && redirecturi.IsListed(requested, a.AuthorizedCallbackURIs):
		return requested, nil
	case len(a.AuthorizedCallbackURIs) == 0:
		return "", apierr.NoCallback.Because("the application has no authorizedCallbackUris; add the address to return to")
	case requested != "":
		return "", apierr.CallbackNotListed.Because("the callback %q is none of the application's authorizedCallbackUris",
			requested)
	}
	if callback := FirstCallback(a); callback != "" {
		return callback, nil
	}
	return "", apierr.CallbackWildcardsOnly.Because(
		"every one of authorizedCallbackUris has a wildcard; add one without, or send cb_uri")
}

// FirstCallback is the first of authorizedCallbackUris without a wildcard, or "".
func FirstCallback(a applicationapi.Application) string {
	for _, uri := range a.AuthorizedCallbackURIs {
		if !strings.Contains(uri, "*") {
			return uri
		}
	}
	return ""
}

// FinishAtSAML verifies a SAML response and logs its user in to the application of from.Flow. A login that did
// not begin at a hosted page has ended by it.
func (j *Journey) FinishAtSAML(ctx context.Context, directory id.ID, from *SAMLCallback,
	response secure.Secret) (Result, error) {
	f := &from.Flow
	if f.FinishedAt != nil || !j.now().Before(f.ExpiresAt) {
		return Result{}, apierr.SAMLMalformed.Because(
			"the login has ended already, or has taken longer than allowed; begin again")
	}
	if err := j.checkSAMLDirectory(ctx, *f, directory); err != nil {
		return Result{}, err
	}
	login, err := j.peers.Directory.FinishSAMLLogin(ctx, directoryapi.FinishSAMLLogin{
		Tenant: f.TenantID, Directory: directory, Application: f.ApplicationID, RequestID: from.RequestID, Response: response,
	})
	if err != nil {
		return Result{}, err
	}
	admitted, err := j.completeLogin(ctx, *f, login.Account.ID, true)
	if err != nil {
		return Result{}, err
	}
	// Account linking may have created a second account, a copy in the default account store:
	// the user is new if the copy is not older than the account of the directory.
	isNew := login.IsNew && !admitted.Account.CreatedAt.Before(login.Account.CreatedAt)
	f.ByPassword = false
	*f = f.WithAccount(admitted.Account, admitted.Organization)
	f.SAMLSession = &login.Session
	if from.IsHosted {
		return j.passFirstStep(ctx, f, admitted, isNew)
	}
	result := Result{Account: admitted.Account, IsNew: isNew}
	if from.RequestID == "" {
		f.RequestID = login.ResponseID
		return result, nil
	}
	return result, j.finishWithoutSession(ctx, f)
}

// checkSAMLDirectory refuses a login to an application that is disabled, or through a directory
// that is not mapped to it, before an account is created.
func (j *Journey) checkSAMLDirectory(ctx context.Context, f store.Flow, directory id.ID) error {
	where := Requested(f)
	stores, err := j.Stores(ctx, where)
	if err != nil {
		return err
	}
	if stores.Status != directoryapi.Enabled {
		return apierr.TokenApplicationDisabled.Because("the application is disabled")
	}
	named, _ := j.base.Parse(where.AccountStore.Href)
	if named.Kind != "groups" && !slices.Contains(stores.Directories, directory) {
		return apierr.NotMapped.Because("the directory %q is not mapped to the application",
			j.base.To("directories", directory))
	}
	return nil
}

// BeginSAMLLogout begins a single logout (SLO): it returns the address of the identity provider with a
// LogoutRequest, or "" where the user has no session there. The session of this service has
// ended already, so that a failure is only logged.
func (j *Journey) BeginSAMLLogout(ctx context.Context, f store.Flow, session store.Session) string {
	if session.SAMLSession == nil {
		return ""
	}
	to, err := j.peers.Directory.SAMLLogout(ctx, directoryapi.SAMLLogout{
		Tenant: f.TenantID, Session: *session.SAMLSession, RelayState: j.newRelayState(f, relayLogout, id.ID{}),
	})
	if err != nil && !errors.Is(err, apierr.NotSAML) {
		slog.WarnContext(ctx, "sending a logout to the identity provider failed", "error", err.Error())
	}
	return to.Location
}

// FinishSAMLLogout takes the end of a single logout (SLO), by which the identity provider has sent the browser
// back, and returns its flow. The session of this service has ended already, so that a failure of the identity
// provider is only logged.
func (j *Journey) FinishSAMLLogout(ctx context.Context, relay, response secure.Secret) (store.Flow, error) {
	purpose, f, err := j.readRelayHandle(ctx, relay, id.ID{})
	if err != nil && !errors.Is(err, servicetoken.ErrInvalid) && !errors.Is(err, apierr.NotFound) {
		return f, err
	}
	if err != nil || purpose != relayLogout {
		return f, apierr.BadRequest.Because("the RelayState is not that of a logout of this service")
	}
	if !j.now().Before(f.CreatedAt.Add(SAMLLoginTTL)) {
		return f, apierr.BadRequest.Because("the logout at the identity provider has taken longer than allowed")
	}
	if err := saml.ReadLogoutResponse(response.Reveal()); err != nil {
		slog.WarnContext(caller.WithTenant(ctx, f.TenantID), "logout not confirmed by the identity provider",
			"tenant", f.TenantID.String(), "error", err.Error())
	}
	return f, nil
}
