package idsite

import (
	"context"
	"errors"
	"net/url"
	"strings"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/redirecturi"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/idsite/journey"
	"github.com/doorward/doorward/services/idsite/store"
)

// Authorize are the parameters of GET {client_url}/authorize
// (docs/interface/oauth.md#authorize).
type Authorize struct {
	ResponseType string
	AccountStore string // href of a directory
	RedirectURI  string
	State        *string
	Scope        string
	Organization string // href
	NameKey      string
	Self         string // address of this Client API
}

// Authorize begins a login at the provider of a directory (social login, SAML) for the Client
// API. It returns the address of the provider and the cookie that binds the login to the browser.
// An error of redirect_uri or of a missing parameter is returned; any other error goes to
// redirect_uri (errorCallback). The callback is in providercallback.go.
func (c *ClientAPI) Authorize(ctx context.Context, in Authorize) (location string, browser secure.Secret, err error) {
	returnTo, err := c.callbackURI(in.RedirectURI)
	if err != nil {
		return "", "", err
	}
	for name, value := range map[string]string{"response_type": in.ResponseType, "account_store_href": in.AccountStore} {
		if value == "" {
			return "", "", apierr.Required.Saying("%s is required.", name)
		}
	}
	browser = journey.NewBrowserToken()
	location, err = c.authorize(ctx, in, returnTo, browser)
	if errors.Is(err, apierr.TooMany) {
		return "", "", err // with Retry-After, which a redirect could not tell
	}
	if err != nil {
		location, err = errorCallback(returnTo, in.State, err)
	}
	return location, browser, err
}

// callbackURI returns the address of the client to which the browser returns: the given
// redirect_uri, if authorizedCallbackUris lists it (open redirect), or the first of these
// without a wildcard.
func (c *ClientAPI) callbackURI(asked string) (string, error) {
	if asked == "" {
		asked = journey.FirstCallback(c.Application)
	} else if !redirecturi.IsListed(asked, c.Application.AuthorizedCallbackURIs) {
		return "", apierr.BadRequest.Saying("redirect_uri is not one of the authorized callbacks of the application.")
	}
	if asked != "" {
		return asked, nil
	}
	return "", apierr.BadRequest.Saying(
		"redirect_uri is required: the application has no authorized callback that is one address.")
}

var errResponseType = apierr.Unsupported.Because("response_type is not supported")

// maxState bounds the state of a client, in bytes, because the state is stored until the login
// ends, and anybody can begin logins.
const maxState = 4000

// authorize validates the other parameters and begins the login.
func (c *ClientAPI) authorize(ctx context.Context, in Authorize, returnTo string,
	browser secure.Secret) (string, error) {
	if in.ResponseType != c.svc.responseType() && in.ResponseType != "service_token" {
		return "", errResponseType
	}
	if in.State != nil && (!field.IsText(*in.State) || len(*in.State) > maxState) {
		return "", apierr.Format.Because("state must be UTF-8 without the character NUL, of at most %d bytes", maxState)
	}
	if in.Organization != "" && in.NameKey != "" {
		return "", apierr.Invalid.Because("of organization_href and organization_name_key one can be given")
	}
	if ref, ok := c.svc.cfg.Base.Parse(in.Organization); in.Organization != "" && (!ok || ref.Kind != "organizations") {
		return "", apierr.Reference.Because("organization_href is not the href of an organization")
	}
	where := c.Target(directoryapi.StoreName{Href: in.Organization, NameKey: in.NameKey})
	d, err := c.svc.Journey.ProviderDirectory(ctx, where, in.AccountStore)
	if err != nil {
		return "", err
	}
	if d.ProviderID == "saml" {
		flow := c.svc.Journey.NewSAMLFlow(c.ref())
		flow.CallbackURI, flow.State = returnTo, in.State
		flow.NameKey, flow.AccountStore = where.NameKey, where.AccountStore.Href
		if err := c.svc.Journey.BeginAnonymous(ctx, flow); err != nil {
			return "", err
		}
		return c.svc.Journey.BeginAtSAML(ctx, flow, d.ID, false)
	}
	return c.svc.Journey.BeginAtProvider(ctx, d, store.ProviderLogin{
		TenantID: where.Tenant, ApplicationID: where.Application, RedirectURI: in.Self + "/authorize/callback",
		ReturnTo: returnTo,
		State:    in.State, AccountStore: where.AccountStore.Href, NameKey: where.NameKey, Browser: secure.Digest(browser),
	}, strings.Fields(in.Scope))
}

// withState adds the state of the client, if there is one, to an address.
func withState(address string, state *string) string {
	if state == nil {
		return address
	}
	return journey.WithParameters(address, url.Values{"state": {*state}})
}
