package openid

import (
	"bytes"
	"context"
	"crypto/subtle"
	"encoding/json"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/list"
	"github.com/doorward/doorward/pkg/redirecturi"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/oauth/store"
)

// The values of client metadata that the standards name.
const (
	typeWeb     = "web"
	typeNative  = "native"
	typeBrowser = "browser"
	typeService = "service"

	grantCode     = "authorization_code"
	grantRefresh  = "refresh_token"
	grantClient   = "client_credentials"
	grantDevice   = "urn:ietf:params:oauth:grant-type:device_code"
	grantExchange = "urn:ietf:params:oauth:grant-type:token-exchange"

	authBasic = "client_secret_basic"
	authPost  = "client_secret_post"
	authKey   = "private_key_jwt"
	authNone  = "none"

	subjectPublic   = "public"
	subjectPairwise = "pairwise"
)

// The values of ours.
const (
	formatJWT    = "JWT"
	formatOpaque = "OPAQUE"

	rotate = "ROTATE"
	keep   = "KEEP"

	exchangeNone     = "NONE"
	exchangeNarrow   = "NARROW"
	exchangeDelegate = "DELEGATION"

	consentNone     = "NONE"
	consentRequired = "REQUIRED"
)

var (
	grantTypes  = []string{grantCode, grantRefresh, grantClient, grantDevice, grantExchange}
	authMethods = []string{authBasic, authPost, authKey, authNone}
)

// clientSecretLength is that of a new secret in characters of base62: 256 bits.
const (
	clientSecretLength = 43
	maxSecrets         = 2
	maxKeySet          = 64 << 10 // bytes
	usedEvery          = time.Minute
)

// ClientChange is the body that creates or updates a client.
type ClientChange struct {
	Name                               field.Text   `json:"name"`
	Description                        field.Text   `json:"description"`
	Status                             field.Text   `json:"status"`
	ApplicationType                    field.Text   `json:"applicationType"`
	RedirectURIs                       field.List   `json:"redirectUris"`
	PostLogoutRedirectURIs             field.List   `json:"postLogoutRedirectUris"`
	GrantTypes                         field.List   `json:"grantTypes"`
	ResponseTypes                      field.List   `json:"responseTypes"`
	TokenEndpointAuthMethod            field.Text   `json:"tokenEndpointAuthMethod"`
	TokenEndpointAuthSigningAlg        field.Text   `json:"tokenEndpointAuthSigningAlg"`
	RequestObjectSigningAlg            field.Text   `json:"requestObjectSigningAlg"`
	JWKS                               field.Object `json:"jwks"`
	JWKSURI                            field.Text   `json:"jwksUri"`
	RequirePKCE                        field.Bool   `json:"requirePkce"`
	RequirePushedAuthorizationRequests field.Bool   `json:"requirePushedAuthorizationRequests"`
	RequireSignedRequestObject         field.Bool   `json:"requireSignedRequestObject"`
	DPoPBoundAccessTokens              field.Bool   `json:"dpopBoundAccessTokens"`
	IDTokenSignedResponseAlg           field.Text   `json:"idTokenSignedResponseAlg"`
	UserinfoSignedResponseAlg          field.Text   `json:"userinfoSignedResponseAlg"`
	SubjectType                        field.Text   `json:"subjectType"`
	SectorIdentifierURI                field.Text   `json:"sectorIdentifierUri"`
	AccessTokenFormat                  field.Text   `json:"accessTokenFormat"`
	AccessTokenTTL                     field.Text   `json:"accessTokenTtl"`
	RefreshTokenTTL                    field.Text   `json:"refreshTokenTtl"`
	IDTokenTTL                         field.Text   `json:"idTokenTtl"`
	DefaultMaxAge                      field.Int    `json:"defaultMaxAge"`
	RequireAuthTime                    field.Bool   `json:"requireAuthTime"`
	DefaultACRValues                   field.List   `json:"defaultAcrValues"`
	InitiateLoginURI                   field.Text   `json:"initiateLoginUri"`
	FrontchannelLogoutURI              field.Text   `json:"frontchannelLogoutUri"`
	BackchannelLogoutURI               field.Text   `json:"backchannelLogoutUri"`
	BackchannelLogoutSessionRequired   field.Bool   `json:"backchannelLogoutSessionRequired"`
	RefreshTokenRotation               field.Text   `json:"refreshTokenRotation"`
	TokenExchange                      field.Text   `json:"tokenExchange"`
	Resources                          field.List   `json:"resources"`
	Consent                            field.Text   `json:"consent"`
	Scopes                             field.List   `json:"scopes"`
	LogoURI                            field.Text   `json:"logoUri"`
	ClientURI                          field.Text   `json:"clientUri"`
	PolicyURI                          field.Text   `json:"policyUri"`
	TosURI                             field.Text   `json:"tosUri"`
	Contacts                           field.List   `json:"contacts"`
}

// newSettings are the defaults of a client of a type.
func newSettings(applicationType string) store.OpenIDClientSettings {
	v := store.OpenIDClientSettings{
		ApplicationType: applicationType, RedirectURIs: []string{}, PostLogoutRedirectURIs: []string{},
		ResponseTypes: []string{"code"},
		GrantTypes:    []string{grantCode, grantRefresh}, TokenEndpointAuthMethod: authBasic, RequirePKCE: true,
		SubjectType:       subjectPublic,
		AccessTokenFormat: formatJWT, DefaultACRValues: []string{}, RefreshTokenRotation: rotate, TokenExchange: exchangeNone,
		Resources: []string{}, Consent: consentNone, Contacts: []string{},
	}
	switch applicationType {
	case typeNative, typeBrowser:
		v.TokenEndpointAuthMethod = authNone
	case typeService:
		v.GrantTypes, v.ResponseTypes = []string{grantClient}, []string{}
	}
	return v
}

// ListClients returns a page of an application's clients, or apierr.NotFound for the application.
func (s *Service) ListClients(ctx context.Context, application id.Ref,
	query list.Query) (list.Page[store.OpenIDClient], error) {
	app, err := s.Application.Application(ctx, application)
	if err != nil {
		return list.Page[store.OpenIDClient]{}, err
	}
	return s.Store.ListOpenIDClients(ctx, application, query.WithParentTimes(app.CreatedAt, app.ModifiedAt))
}

// Client returns a client, or apierr.NotFound, also where its application was deleted a moment ago.
func (s *Service) Client(ctx context.Context, client id.Ref) (store.OpenIDClient, error) {
	c, err := s.Store.OpenIDClient(ctx, client)
	if err == nil {
		_, err = s.Application.Application(ctx, id.Ref{Tenant: client.Tenant, ID: c.ApplicationID})
	}
	return c, err
}

// CreateClient creates a client without a secret. It returns apierr.NotFound for the application, and
// apierr.Exists for a name that another client of the application has.
func (s *Service) CreateClient(ctx context.Context, application id.Ref, in ClientChange) (store.OpenIDClient, error) {
	app, err := s.ownApplication(ctx, application)
	if err != nil {
		return store.OpenIDClient{}, err
	}
	applicationType, err := field.Enum(in.ApplicationType, "applicationType", typeWeb, typeWeb, typeNative, typeBrowser,
		typeService)
	if err != nil {
		return store.OpenIDClient{}, err
	}
	now := s.Now()
	c := store.OpenIDClient{
		TenantID: app.TenantID, ID: id.New(now), ApplicationID: app.ID, Status: directoryapi.Enabled,
		Settings:  newSettings(applicationType),
		CreatedAt: now, ModifiedAt: now,
	}
	c.ClientID = c.ID.String()
	if err := in.apply(&c, true); err != nil {
		return c, err
	}
	return c, s.Store.Tx(ctx, func(tx *store.Tx) error { return tx.InsertOpenIDClient(ctx, c) })
}

// UpdateClient changes the members that the body names. A client that is disabled gets no tokens, and those that
// it has end (docs/interface/openid.md#clients).
func (s *Service) UpdateClient(ctx context.Context, client id.Ref, in ClientChange) (c store.OpenIDClient, err error) {
	if c, err = s.Client(ctx, client); err != nil {
		return c, err
	}
	err = s.Store.Tx(ctx, func(tx *store.Tx) (err error) {
		if c, err = tx.LockOpenIDClient(ctx, client); err != nil {
			return err
		}
		if err := in.apply(&c, false); err != nil {
			return err
		}
		c.ModifiedAt = s.Now()
		return tx.UpdateOpenIDClient(ctx, c)
	})
	return c, err
}

// DeleteClient deletes a client with its secrets, or returns apierr.NotFound. Its tokens end.
func (s *Service) DeleteClient(ctx context.Context, client id.Ref) error {
	return s.Store.Tx(ctx, func(tx *store.Tx) error {
		if _, err := tx.LockOpenIDClient(ctx, client); err != nil {
			return err
		}
		return tx.DeleteOpenIDClient(ctx, client)
	})
}

// apply checks the members of a body, writes them into a client, and checks what they are together.
func (in ClientChange) apply(c *store.OpenIDClient, isNew bool) error {
	var errs field.Errors
	v := &c.Settings
	errs.Name(&c.Name, in.Name, "name", maxText, isNew)
	errs.Optional(&c.Description, in.Description, "description", 1000)
	errs.Enum(&c.Status, in.Status, "status", directoryapi.Enabled, directoryapi.Disabled)
	errs.Enum(&v.ApplicationType, in.ApplicationType, "applicationType", typeWeb, typeNative, typeBrowser, typeService)
	in.applyURLs(v, &errs)
	words := func(to *[]string, given field.List, name string, allowed []string) {
		if given.Present {
			var err error
			*to, err = enums(given, name, allowed)
			errs.Add(err)
		}
	}
	words(&v.GrantTypes, in.GrantTypes, "grantTypes", grantTypes)
	words(&v.ResponseTypes, in.ResponseTypes, "responseTypes", []string{"code"})
	if in.GrantTypes.Present && !in.TokenExchange.Present {
		v.TokenExchange = map[bool]string{true: exchangeNarrow, false: exchangeNone}[slices.Contains(v.GrantTypes,
			grantExchange)]
	}
	errs.Enum(&v.TokenEndpointAuthMethod, in.TokenEndpointAuthMethod, "tokenEndpointAuthMethod", authMethods...)
	errs.Enum(&v.SubjectType, in.SubjectType, "subjectType", subjectPublic, subjectPairwise)
	errs.Enum(&v.AccessTokenFormat, in.AccessTokenFormat, "accessTokenFormat", formatJWT, formatOpaque)
	errs.Enum(&v.RefreshTokenRotation, in.RefreshTokenRotation, "refreshTokenRotation", rotate, keep)
	errs.Enum(&v.TokenExchange, in.TokenExchange, "tokenExchange", exchangeNone, exchangeNarrow, exchangeDelegate)
	errs.Enum(&v.Consent, in.Consent, "consent", consentNone, consentRequired)
	for _, m := range []struct {
		to   **string
		in   field.Text
		name string
	}{
		{&v.TokenEndpointAuthSigningAlg, in.TokenEndpointAuthSigningAlg, "tokenEndpointAuthSigningAlg"},
		{&v.RequestObjectSigningAlg, in.RequestObjectSigningAlg, "requestObjectSigningAlg"},
		{&v.IDTokenSignedResponseAlg, in.IDTokenSignedResponseAlg, "idTokenSignedResponseAlg"},
		{&v.UserinfoSignedResponseAlg, in.UserinfoSignedResponseAlg, "userinfoSignedResponseAlg"},
	} {
		nullable(&errs, m.to, m.in, func(in field.Text) (string, error) {
			return field.Enum(in, m.name, "", secure.SigningAlgorithms...)
		})
	}
	for _, m := range []struct {
		to   **string
		in   field.Text
		name string
	}{
		{&v.AccessTokenTTL, in.AccessTokenTTL, "accessTokenTtl"}, {&v.RefreshTokenTTL, in.RefreshTokenTTL, "refreshTokenTtl"},
		{&v.IDTokenTTL, in.IDTokenTTL, "idTokenTtl"},
	} {
		nullable(&errs, m.to, m.in, func(in field.Text) (string, error) {
			return duration(in, m.name, time.Second, maxDuration)
		})
	}
	for _, m := range []struct {
		to   *bool
		in   field.Bool
		name string
	}{
		{&v.RequirePKCE, in.RequirePKCE, "requirePkce"},
		{&v.RequirePushedAuthorizationRequests, in.RequirePushedAuthorizationRequests, "requirePushedAuthorizationRequests"},
		{&v.RequireSignedRequestObject, in.RequireSignedRequestObject, "requireSignedRequestObject"},
		{&v.DPoPBoundAccessTokens, in.DPoPBoundAccessTokens, "dpopBoundAccessTokens"},
		{&v.RequireAuthTime, in.RequireAuthTime, "requireAuthTime"},
		{&v.BackchannelLogoutSessionRequired, in.BackchannelLogoutSessionRequired, "backchannelLogoutSessionRequired"},
	} {
		if m.in.Null {
			errs.Add(apierr.Required.Because("%s cannot be null", m.name))
		}
		*m.to = m.in.Or(*m.to)
	}
	if in.DefaultMaxAge.Null {
		v.DefaultMaxAge = nil
	} else if in.DefaultMaxAge.Present {
		age, err := field.Whole(in.DefaultMaxAge, "defaultMaxAge", 0, 0, int(maxDuration/time.Second))
		errs.Add(err)
		v.DefaultMaxAge = &age
	}
	for _, m := range []struct {
		to   *[]string
		in   field.List
		name string
	}{{&v.DefaultACRValues, in.DefaultACRValues, "defaultAcrValues"}, {&v.Contacts, in.Contacts, "contacts"}} {
		if m.in.Present {
			errs.Add(checkLength(m.in.Or(nil), m.name, func(text string) bool { return text != "" && len(text) <= maxText }))
			*m.to = append([]string{}, m.in.Or(nil)...)
		}
	}
	if in.Scopes.Present {
		errs.Add(checkLength(in.Scopes.Or(nil), "scopes", isScope))
		v.Scopes = in.Scopes.Or(nil)
	}
	if in.JWKS.Null {
		v.JWKS = nil
	} else if in.JWKS.Present {
		keys, err := secure.ParseKeySet(in.JWKS.Value)
		if err != nil || len(keys) == 0 || len(in.JWKS.Value) > maxKeySet {
			errs.Add(apierr.Format.Because("jwks must be a key set (RFC 7517) of at most %d bytes with a public key of %s, and without private keys",
				maxKeySet, field.Or(secure.SigningAlgorithms)))
		}
		set := bytes.Clone(in.JWKS.Value)
		v.JWKS = (*json.RawMessage)(&set)
	}
	if err := errs.First(); err != nil {
		return err
	}
	return checkSettings(*v)
}

// applyURLs checks the members that are addresses.
func (in ClientChange) applyURLs(v *store.OpenIDClientSettings, errs *field.Errors) {
	isRedirect := func(text string) bool { return isRedirectURI(text, v.ApplicationType) }
	for _, m := range []struct {
		to   *[]string
		in   field.List
		name string
		is   func(string) bool
	}{
		{&v.RedirectURIs, in.RedirectURIs, "redirectUris", isRedirect},
		{&v.PostLogoutRedirectURIs, in.PostLogoutRedirectURIs, "postLogoutRedirectUris", isRedirect},
		{&v.Resources, in.Resources, "resources", isResource},
	} {
		if m.in.Present {
			var err error
			*m.to, err = urls(m.in, m.name, m.is)
			errs.Add(err)
		}
	}
	for _, m := range []struct {
		to   **string
		in   field.Text
		name string
	}{
		{&v.JWKSURI, in.JWKSURI, "jwksUri"}, {&v.SectorIdentifierURI, in.SectorIdentifierURI, "sectorIdentifierUri"},
		{&v.InitiateLoginURI, in.InitiateLoginURI, "initiateLoginUri"}, {&v.FrontchannelLogoutURI, in.FrontchannelLogoutURI,
			"frontchannelLogoutUri"},
		{&v.BackchannelLogoutURI, in.BackchannelLogoutURI, "backchannelLogoutUri"}, {&v.LogoURI, in.LogoURI, "logoUri"},
		{&v.ClientURI, in.ClientURI, "clientUri"}, {&v.PolicyURI, in.PolicyURI, "policyUri"}, {&v.TosURI, in.TosURI,
			"tosUri"},
	} {
		nullable(errs, m.to, m.in, func(in field.Text) (string, error) {
			text, err := field.Required(in, m.name, maxURL)
			if err == nil {
				_, err = field.URL("https")(m.name, text)
			}
			return text, err
		})
	}
}

// nullable sets to by read, or to nil for null, if the body has the member.
func nullable(errs *field.Errors, to **string, in field.Text, read func(field.Text) (string, error)) {
	errs.SetOptional(to, in, func(in field.Text) (*string, error) {
		if in.Null {
			return nil, nil
		}
		text, err := read(in)
		return &text, err
	})
}

// checkSettings refuses members that contradict each other.
func checkSettings(v store.OpenIDClientSettings) error {
	public := v.TokenEndpointAuthMethod == authNone
	redirects := slices.Contains(v.GrantTypes, grantCode)
	switch {
	case public && v.ApplicationType != typeNative && v.ApplicationType != typeBrowser:
		return apierr.Format.Because("tokenEndpointAuthMethod none is for the applicationType native or browser")
	case public && (slices.Contains(v.GrantTypes, grantClient) || slices.Contains(v.GrantTypes, grantExchange)):
		return apierr.Format.Because("a client without authentication cannot have the grantTypes %s and %s", grantClient,
			grantExchange)
	case public && !v.RequirePKCE:
		return apierr.Format.Because("requirePkce must be true for a client without authentication")
	case v.TokenEndpointAuthMethod == authKey && v.JWKS == nil && v.JWKSURI == nil:
		return apierr.Format.Because("tokenEndpointAuthMethod private_key_jwt needs jwks or jwksUri")
	case v.JWKS != nil && v.JWKSURI != nil:
		return apierr.Format.Because("jwks and jwksUri exclude each other")
	case redirects && !slices.Contains(v.ResponseTypes, "code") || !redirects && len(v.ResponseTypes) > 0:
		return apierr.Format.Because("the grantTypes have authorization_code exactly where the responseTypes have code")
	case slices.Contains(v.GrantTypes, grantRefresh) && !redirects && !slices.Contains(v.GrantTypes, grantDevice):
		return apierr.Format.Because("the grant type refresh_token needs authorization_code or the device code beside it")
	case v.TokenExchange != exchangeNone && !slices.Contains(v.GrantTypes, grantExchange):
		return apierr.Format.Because("tokenExchange %s needs the grant type %s", v.TokenExchange, grantExchange)
	case v.SubjectType == subjectPairwise && v.SectorIdentifierURI == nil && !sameHost(v.RedirectURIs):
		return apierr.Format.Because("subjectType pairwise with redirectUris of several hosts needs sectorIdentifierUri")
	}
	for _, uri := range slices.Concat(v.RedirectURIs, v.PostLogoutRedirectURIs) {
		if !isRedirectURI(uri, v.ApplicationType) {
			return apierr.Format.Because("the redirect URI %q is not one of an application of the type %s", uri,
				v.ApplicationType)
		}
	}
	return nil
}

func sameHost(uris []string) bool {
	for _, uri := range uris {
		if hostOf(uri) != hostOf(uris[0]) {
			return false
		}
	}
	return true
}

func hostOf(uri string) string {
	u, err := url.Parse(uri)
	if err != nil {
		return ""
	}
	return u.Hostname()
}

// isRedirectURI reports whether a client of a type may register a redirect URI: https, http of the own machine,
// and for native applications a private-use scheme with a dot (RFC 8252, section 7.1). URIs are compared byte by
// byte later, so that a text which two parsers read differently is refused here.
func isRedirectURI(text, applicationType string) bool {
	u, ok := plainURL(text)
	if !ok || strings.Contains(text, "*") {
		return false
	}
	switch u.Scheme {
	case "https":
		return u.Hostname() != "" && redirecturi.CheckHome(text, "") == nil
	case "http":
		return isOwnMachine(u.Hostname()) && redirecturi.CheckHome(text, "") == nil
	}
	return applicationType == typeNative && strings.Contains(u.Scheme, ".") && u.Host == "" &&
		!redirecturi.IsExecutable(u.Scheme)
}

// isOwnMachine reports whether a host is localhost or a loopback address.
func isOwnMachine(host string) bool {
	address, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && address.IsLoopback()
}

// matchesRedirectURI reports whether a redirect URI is a registered one.
func matchesRedirectURI(v store.OpenIDClientSettings, asked string) bool {
	return matchesURI(v, v.RedirectURIs, asked)
}

// matchesURI reports whether a redirect URI is one of a client's: byte by byte (RFC 9700, section 2.1), but for the
// port of a loopback address of a native application (RFC 8252, section 7.3).
func matchesURI(v store.OpenIDClientSettings, known []string, asked string) bool {
	if slices.Contains(known, asked) {
		return true
	}
	u, ok := plainURL(asked)
	if !ok || v.ApplicationType != typeNative || u.Scheme != "http" || !isOwnMachine(u.Hostname()) ||
		!isRedirectURI(asked, typeNative) {
		return false
	}
	return slices.ContainsFunc(known, func(registered string) bool {
		r, ok := plainURL(registered)
		return ok && withoutPort(r, registered) == withoutPort(u, asked)
	})
}

func withoutPort(u *url.URL, text string) string {
	if u.Port() == "" {
		return text
	}
	return strings.Replace(text, u.Host, strings.TrimSuffix(u.Host, ":"+u.Port()), 1)
}

// isResource reports whether a text is the address of an API (RFC 8707, section 2).
func isResource(text string) bool {
	u, ok := plainURL(text)
	return ok && (u.Scheme == "https" || u.Scheme == "http") && u.Hostname() != "" || ok && u.Scheme == "urn" &&
		u.Opaque != ""
}

// plainURL parses an absolute URI of printable ASCII without user name, fragment and backslash.
func plainURL(text string) (*url.URL, bool) {
	if len(text) > maxURL || strings.ContainsFunc(text, func(r rune) bool {
		return r <= ' ' || r >= 0x7f || strings.ContainsRune("\"<>\\^`{|}#", r)
	}) {
		return nil, false
	}
	u, err := url.Parse(text)
	return u, err == nil && u.IsAbs() && u.User == nil && !strings.HasSuffix(u.Host, ":")
}

func checkLength(items []string, name string, is func(string) bool) error {
	if len(items) > maxList {
		return apierr.AboveMaximum.Because("%s has %d items; at most %d are allowed", name, len(items), maxList)
	}
	for _, item := range items {
		if !is(item) {
			return apierr.Format.Because("%s has %q, which does not have the right form", name, item)
		}
	}
	return nil
}

func urls(in field.List, name string, is func(string) bool) ([]string, error) {
	return append([]string{}, in.Or(nil)...), checkLength(in.Or(nil), name, is)
}

func enums(in field.List, name string, allowed []string) ([]string, error) {
	out := []string{}
	for _, text := range in.Or(nil) {
		if !slices.Contains(allowed, text) {
			return nil, apierr.Unsupported.Because("%s has %q; it may have %s", name, text, field.Or(allowed))
		}
		if !slices.Contains(out, text) {
			out = append(out, text)
		}
	}
	return out, nil
}

// NewSecret is a secret that was just made.
type NewSecret struct {
	store.ClientSecret
	Secret secure.Secret
}

// CreateSecret makes a secret of a client, which is shown once. A third one is apierr.Exists.
func (s *Service) CreateSecret(ctx context.Context, client id.Ref) (made NewSecret, err error) {
	if _, err := s.Client(ctx, client); err != nil {
		return made, err
	}
	now := s.Now()
	made.Secret = secure.Token(clientSecretLength)
	made.ClientSecret = store.ClientSecret{TenantID: client.Tenant, ClientID: client.ID, ID: id.New(now),
		Digest: secure.Digest(made.Secret), CreatedAt: now}
	return made, s.Store.Tx(ctx, func(tx *store.Tx) error {
		c, err := tx.LockOpenIDClient(ctx, client)
		if err != nil {
			return err
		}
		secrets, err := tx.LockClientSecrets(ctx, client)
		switch {
		case err != nil:
			return err
		case c.Settings.TokenEndpointAuthMethod == authNone || c.Settings.TokenEndpointAuthMethod == authKey:
			return apierr.Format.Because("a client with the tokenEndpointAuthMethod %s has no secret",
				c.Settings.TokenEndpointAuthMethod)
		case len(secrets) >= maxSecrets:
			return apierr.Exists.Because("the client has %d secrets: delete one first", len(secrets))
		}
		tx.InsertClientSecret(made.ClientSecret)
		return nil
	})
}

// Secrets returns the secrets of a client, without the secrets themselves.
func (s *Service) Secrets(ctx context.Context, client id.Ref, query list.Query) (list.Page[store.ClientSecret], error) {
	c, err := s.Client(ctx, client)
	if err != nil {
		return list.Page[store.ClientSecret]{}, err
	}
	page := list.NewPage[store.ClientSecret](query.WithParentTimes(c.CreatedAt, c.ModifiedAt))
	secrets, err := s.Store.ClientSecrets(ctx, client)
	page.Size = len(secrets)
	page.Items = append(page.Items, secrets[min(query.Offset, len(secrets)):min(query.Offset+query.Limit,
		len(secrets))]...)
	return page, err
}

// DeleteSecret deletes a secret of a client, or returns apierr.NotFound.
func (s *Service) DeleteSecret(ctx context.Context, client id.Ref, secret id.ID) error {
	return s.Store.Tx(ctx, func(tx *store.Tx) error {
		if _, err := tx.LockOpenIDClient(ctx, client); err != nil {
			return err
		}
		return tx.DeleteClientSecret(ctx, client, secret)
	})
}

// checkSecret reports whether a client has a secret, and records its use.
func (s *Service) checkSecret(ctx context.Context, c store.OpenIDClient, given secure.Secret) (bool, error) {
	secrets, err := s.Store.CachedClientSecrets(ctx, id.Ref{Tenant: c.TenantID, ID: c.ID})
	if err != nil {
		return false, err
	}
	digest := secure.Digest(given)
	for _, known := range secrets {
		if subtle.ConstantTimeCompare(known.Digest, digest) != 1 {
			continue
		}
		if now := s.Now(); known.LastUsedAt == nil || now.Sub(*known.LastUsedAt) >= usedEvery {
			err = s.Store.Tx(ctx, func(tx *store.Tx) error {
				tx.UseClientSecret(known, now)
				return nil
			})
		}
		return true, err
	}
	return false, nil
}
