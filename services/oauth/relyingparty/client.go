// Package relyingparty has the clients of OpenID providers: their metadata, secrets, keys and redirect URIs
// (docs/interface/openid.md#clients). It is a part of the OAuth service; services/oauth/openid authenticates them.
package relyingparty

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/cache"
	"github.com/doorward/doorward/pkg/customdata"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/list"
	"github.com/doorward/doorward/pkg/outbound"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/oauth/signing"
	"github.com/doorward/doorward/services/oauth/store"
)

// The values of client metadata that the standards name.
const (
	TypeWeb     = "web"
	TypeNative  = "native"
	TypeBrowser = "browser"
	TypeService = "service"

	GrantCode     = "authorization_code"
	GrantRefresh  = "refresh_token"
	GrantClient   = "client_credentials"
	GrantDevice   = "urn:ietf:params:oauth:grant-type:device_code"
	GrantExchange = "urn:ietf:params:oauth:grant-type:token-exchange"

	AuthBasic = "client_secret_basic"
	AuthPost  = "client_secret_post"
	AuthKey   = "private_key_jwt"
	AuthNone  = "none"

	SubjectPublic   = "public"
	SubjectPairwise = "pairwise"
)

// The values of ours.
const (
	FormatJWT    = "JWT"
	FormatOpaque = "OPAQUE"

	Rotate = "ROTATE"
	Keep   = "KEEP"

	ExchangeNone     = "NONE"
	ExchangeNarrow   = "NARROW"
	ExchangeDelegate = "DELEGATION"

	ConsentNone     = "NONE"
	ConsentRequired = "REQUIRED"
)

// What a client may be registered with.
var (
	GrantTypes  = []string{GrantCode, GrantRefresh, GrantClient, GrantDevice, GrantExchange}
	AuthMethods = []string{AuthBasic, AuthPost, AuthKey, AuthNone}
)

// SecretLength is that of a new secret in characters of base62: 256 bits.
const (
	SecretLength = 43

	MaxList = 50 // items of a list of a provider or client
	MaxText = 255
	MaxURL  = 2000

	maxSecrets = 2
	maxKeySet  = 64 << 10 // bytes
	usedEvery  = time.Minute
)

// Change is the body that creates or updates a client.
type Change struct {
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

	CustomData customdata.Change `json:"customData"`
}

// isCustomDataAlone reports whether a body has custom data and nothing else, which does not change the client.
func (in Change) isCustomDataAlone() bool {
	hasData := in.CustomData.Present
	in.CustomData = customdata.Change{}
	return hasData && reflect.ValueOf(in).IsZero()
}

// Clients has the rules of clients.
type Clients struct {
	Config
	fetched   *cache.Cache[string, fetchedKeys]
	documents *cache.Cache[documentRef, document]
	salts     *cache.Cache[id.ID, secure.Secret]
	outbound  http.Client
}

// Config is what the rules need.
type Config struct {
	Store       *store.Store
	Application applicationapi.API
	Now         func() time.Time
	// Outbound is the guard of connections to addresses that clients have named.
	Outbound outbound.Guard
}

// New returns the rules.
func New(cfg Config) *Clients {
	return &Clients{
		Config: cfg,
		fetched: cache.New(cache.Config[string, fetchedKeys]{Name: "oauth.PublicKeys", Size: 4096,
			MaxAge: fetchedKeysAge, Now: cfg.Now}),
		documents: cache.New(cache.Config[documentRef, document]{Name: "oauth.ClientIDMetadataDocuments", Size: 4096,
			MaxAge: mostDocumentAge, Now: cfg.Now}),
		salts: cache.New(cache.Config[id.ID, secure.Secret]{Name: "oauth.salts", Size: 4096, MaxAge: time.Hour,
			Now: cfg.Now}),
		outbound: http.Client{Transport: cfg.Outbound.Transport(), CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		}},
	}
}

// newSettings are the defaults of a client of a type under the profile of its provider.
func newSettings(applicationType, profile string) store.OpenIDClientSettings {
	v := store.OpenIDClientSettings{
		ApplicationType: applicationType, RedirectURIs: []string{}, PostLogoutRedirectURIs: []string{},
		ResponseTypes: []string{"code"},
		GrantTypes:    []string{GrantCode, GrantRefresh}, TokenEndpointAuthMethod: AuthBasic, RequirePKCE: true,
		SubjectType:       SubjectPublic,
		AccessTokenFormat: FormatJWT, DefaultACRValues: []string{}, RefreshTokenRotation: Rotate, TokenExchange: ExchangeNone,
		Resources: []string{}, Consent: ConsentNone, Contacts: []string{},
	}
	switch applicationType {
	case TypeNative, TypeBrowser:
		v.TokenEndpointAuthMethod = AuthNone
	case TypeService:
		v.GrantTypes, v.ResponseTypes = []string{GrantClient}, []string{}
	}
	if profile == ProfileFAPI2 {
		v.TokenEndpointAuthMethod, v.RefreshTokenRotation = AuthKey, Keep
		v.DPoPBoundAccessTokens, v.RequirePushedAuthorizationRequests = true, true
	}
	return v
}

// ListClients returns a page of an application's clients, or apierr.NotFound for the application.
func (s *Clients) ListClients(ctx context.Context, application id.Ref,
	query list.Query) (list.Page[store.OpenIDClient], error) {
	app, err := s.Application.Application(ctx, application)
	if err != nil {
		return list.Page[store.OpenIDClient]{}, err
	}
	return s.Store.ListOpenIDClients(ctx, application, query.WithParentTimes(app.CreatedAt, app.ModifiedAt))
}

// Client returns a client, or apierr.NotFound, also where its application was deleted a moment ago.
func (s *Clients) Client(ctx context.Context, client id.Ref) (store.OpenIDClient, error) {
	c, err := s.Store.OpenIDClient(ctx, client)
	if err == nil {
		_, err = s.Application.Application(ctx, id.Ref{Tenant: client.Tenant, ID: c.ApplicationID})
	}
	return c, err
}

// CreateClient creates a client without a secret. It returns apierr.NotFound for the application, and
// apierr.Exists for a name that another client of the application has.
func (s *Clients) CreateClient(ctx context.Context, application id.Ref, in Change) (store.OpenIDClient, error) {
	app, err := s.OwnApplication(ctx, application)
	if err != nil {
		return store.OpenIDClient{}, err
	}
	applicationType, err := field.Enum(in.ApplicationType, "applicationType", TypeWeb, TypeWeb, TypeNative, TypeBrowser,
		TypeService)
	if err != nil {
		return store.OpenIDClient{}, err
	}
	profile, err := s.profile(ctx, application)
	if err != nil {
		return store.OpenIDClient{}, err
	}
	now := s.Now()
	c := store.OpenIDClient{
		TenantID: app.TenantID, ID: id.New(now), ApplicationID: app.ID, Status: directoryapi.Enabled,
		Settings:  newSettings(applicationType, profile),
		CreatedAt: now, ModifiedAt: now,
	}
	c.ClientID = c.ID.String()
	if err := in.apply(&c, profile, true); err != nil {
		return c, err
	}
	if err := s.checkSector(ctx, c.Settings); err != nil {
		return c, err
	}
	return c, s.Store.Tx(ctx, func(tx *store.Tx) error {
		if err := tx.InsertOpenIDClient(ctx, c); err != nil {
			return err
		}
		return tx.MergeClientCustomData(ctx, id.Ref{Tenant: c.TenantID, ID: c.ID}, in.CustomData.Value, now)
	})
}

// UpdateClient changes the members that the body names. A client that is disabled gets no tokens, and those that
// it has end (docs/interface/openid.md#clients).
func (s *Clients) UpdateClient(ctx context.Context, client id.Ref, in Change) (c store.OpenIDClient, err error) {
	if c, err = s.Client(ctx, client); err != nil {
		return c, err
	}
	profile, err := s.profile(ctx, id.Ref{Tenant: c.TenantID, ID: c.ApplicationID})
	if err != nil {
		return c, err
	}
	if in.SectorIdentifierURI.Present || in.RedirectURIs.Present {
		changed := c
		if err := in.apply(&changed, profile, false); err != nil {
			return c, err
		}
		if err := s.checkSector(ctx, changed.Settings); err != nil { // before the transaction: it asks another server
			return c, err
		}
	}
	err = s.Store.Tx(ctx, func(tx *store.Tx) (err error) {
		if c, err = tx.LockOpenIDClient(ctx, client); err != nil {
			return err
		}
		if err := in.apply(&c, profile, false); err != nil {
			return err
		}
		if err := tx.MergeClientCustomData(ctx, client, in.CustomData.Value, s.Now()); err != nil ||
			in.isCustomDataAlone() {
			return err
		}
		c.ModifiedAt = s.Now()
		return tx.UpdateOpenIDClient(ctx, c)
	})
	return c, err
}

// CustomData returns the customData of clients.
func (s *Clients) CustomData() customdata.Store { return s.Store.ClientCustomData(s.Now) }

// DeleteClient deletes a client with its secrets, or returns apierr.NotFound. Its tokens end.
func (s *Clients) DeleteClient(ctx context.Context, client id.Ref) error {
	return s.Store.Tx(ctx, func(tx *store.Tx) error {
		if _, err := tx.LockOpenIDClient(ctx, client); err != nil {
			return err
		}
		return tx.DeleteOpenIDClient(ctx, client)
	})
}

// apply checks the members of a body, writes them into a client, and checks what they are together and under the
// profile of the provider.
func (in Change) apply(c *store.OpenIDClient, profile string, isNew bool) error {
	var errs field.Errors
	v := &c.Settings
	errs.Name(&c.Name, in.Name, "name", MaxText, isNew)
	errs.Optional(&c.Description, in.Description, "description", 1000)
	errs.Enum(&c.Status, in.Status, "status", directoryapi.Enabled, directoryapi.Disabled)
	errs.Enum(&v.ApplicationType, in.ApplicationType, "applicationType", TypeWeb, TypeNative, TypeBrowser, TypeService)
	in.applyURLs(v, &errs)
	words := func(to *[]string, given field.List, name string, allowed []string) {
		if given.Present {
			var err error
			*to, err = enums(given, name, allowed)
			errs.Add(err)
		}
	}
	words(&v.GrantTypes, in.GrantTypes, "grantTypes", GrantTypes)
	words(&v.ResponseTypes, in.ResponseTypes, "responseTypes", []string{"code"})
	if isNew && !in.ResponseTypes.Present && !slices.Contains(v.GrantTypes, GrantCode) {
		v.ResponseTypes = []string{}
	}
	if in.GrantTypes.Present && !in.TokenExchange.Present {
		v.TokenExchange = map[bool]string{true: ExchangeNarrow, false: ExchangeNone}[slices.Contains(v.GrantTypes,
			GrantExchange)]
	}
	errs.Enum(&v.TokenEndpointAuthMethod, in.TokenEndpointAuthMethod, "tokenEndpointAuthMethod", AuthMethods...)
	errs.Enum(&v.SubjectType, in.SubjectType, "subjectType", SubjectPublic, SubjectPairwise)
	errs.Enum(&v.AccessTokenFormat, in.AccessTokenFormat, "accessTokenFormat", FormatJWT, FormatOpaque)
	errs.Enum(&v.RefreshTokenRotation, in.RefreshTokenRotation, "refreshTokenRotation", Rotate, Keep)
	errs.Enum(&v.TokenExchange, in.TokenExchange, "tokenExchange", ExchangeNone, ExchangeNarrow, ExchangeDelegate)
	errs.Enum(&v.Consent, in.Consent, "consent", ConsentNone, ConsentRequired)
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
			return field.Duration(in, m.name, time.Second, signing.MaxDuration)
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
		age, err := field.Whole(in.DefaultMaxAge, "defaultMaxAge", 0, 0, int(signing.MaxDuration/time.Second))
		errs.Add(err)
		v.DefaultMaxAge = &age
	}
	for _, m := range []struct {
		to   *[]string
		in   field.List
		name string
	}{{&v.DefaultACRValues, in.DefaultACRValues, "defaultAcrValues"}, {&v.Contacts, in.Contacts, "contacts"}} {
		if m.in.Present {
			errs.Add(checkLength(m.in.Or(nil), m.name, func(text string) bool { return text != "" && len(text) <= MaxText }))
			*m.to = append([]string{}, m.in.Or(nil)...)
		}
	}
	if in.Scopes.Present {
		errs.Add(checkLength(in.Scopes.Or(nil), "scopes", IsScope))
		v.Scopes = in.Scopes.Or(nil)
	}
	if in.JWKS.Null {
		v.JWKS = nil
	} else if in.JWKS.Present {
		keys, err := secure.ParseKeySet(in.JWKS.Value)
		if err != nil || len(keys) == 0 || len(in.JWKS.Value) > maxKeySet {
			errs.Add(apierr.Format.Because("jwks must be a key set (RFC 7517) of at most %d bytes with a public key of %s, "+
				"and without private keys",
				maxKeySet, field.Or(secure.SigningAlgorithms)))
		}
		set := bytes.Clone(in.JWKS.Value)
		v.JWKS = (*json.RawMessage)(&set)
	}
	if err := errs.First(); err != nil {
		return err
	}
	if err := checkSettings(*v); err != nil || profile != ProfileFAPI2 {
		return err
	}
	return CheckFAPI(*v)
}

// applyURLs checks the members that are addresses.
func (in Change) applyURLs(v *store.OpenIDClientSettings, errs *field.Errors) {
	isRedirect := func(text string) bool { return IsRedirectURI(text, v.ApplicationType) }
	for _, m := range []struct {
		to   *[]string
		in   field.List
		name string
		is   func(string) bool
	}{
		{&v.RedirectURIs, in.RedirectURIs, "redirectUris", isRedirect},
		{&v.PostLogoutRedirectURIs, in.PostLogoutRedirectURIs, "postLogoutRedirectUris", isRedirect},
		{&v.Resources, in.Resources, "resources", IsResource},
	} {
		if m.in.Present {
			var err error
			*m.to, err = URLs(m.in, m.name, m.is)
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
			text, err := field.Required(in, m.name, MaxURL)
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
	public := v.TokenEndpointAuthMethod == AuthNone
	redirects := slices.Contains(v.GrantTypes, GrantCode)
	switch {
	case public && v.ApplicationType != TypeNative && v.ApplicationType != TypeBrowser:
		return apierr.Format.Because("tokenEndpointAuthMethod none is for the applicationType native or browser")
	case public && (slices.Contains(v.GrantTypes, GrantClient) || slices.Contains(v.GrantTypes, GrantExchange)):
		return apierr.Format.Because("a client without authentication cannot have the GrantTypes %s and %s", GrantClient,
			GrantExchange)
	case public && !v.RequirePKCE:
		return apierr.Format.Because("requirePkce must be true for a client without authentication")
	case v.TokenEndpointAuthMethod == AuthKey && v.JWKS == nil && v.JWKSURI == nil:
		return apierr.Format.Because("tokenEndpointAuthMethod private_key_jwt needs jwks or jwksUri")
	case v.JWKS != nil && v.JWKSURI != nil:
		return apierr.Format.Because("jwks and jwksUri exclude each other")
	case redirects && !slices.Contains(v.ResponseTypes, "code") || !redirects && len(v.ResponseTypes) > 0:
		return apierr.Format.Because("the GrantTypes have authorization_code exactly where the responseTypes have code")
	case slices.Contains(v.GrantTypes, GrantRefresh) && !redirects && !slices.Contains(v.GrantTypes, GrantDevice):
		return apierr.Format.Because("the grant type refresh_token needs authorization_code or the device code beside it")
	case v.TokenExchange != ExchangeNone && !slices.Contains(v.GrantTypes, GrantExchange):
		return apierr.Format.Because("tokenExchange %s needs the grant type %s", v.TokenExchange, GrantExchange)
	case v.SubjectType == SubjectPairwise && v.SectorIdentifierURI == nil && !sameHost(v.RedirectURIs):
		return apierr.Format.Because("subjectType pairwise with redirectUris of several hosts needs sectorIdentifierUri")
	}
	for _, uri := range slices.Concat(v.RedirectURIs, v.PostLogoutRedirectURIs) {
		if !IsRedirectURI(uri, v.ApplicationType) {
			return apierr.Format.Because("the redirect URI %q is not one of an application of the type %s", uri,
				v.ApplicationType)
		}
	}
	return nil
}

func sameHost(uris []string) bool {
	for _, uri := range uris {
		if HostOf(uri) != HostOf(uris[0]) {
			return false
		}
	}
	return true
}

func checkLength(items []string, name string, is func(string) bool) error {
	if len(items) > MaxList {
		return apierr.AboveMaximum.Because("%s has %d items; at most %d are allowed", name, len(items), MaxList)
	}
	for _, item := range items {
		if !is(item) {
			return apierr.Format.Because("%s has %q, which does not have the right form", name, item)
		}
	}
	return nil
}

// URLs reads a list of addresses.
func URLs(in field.List, name string, is func(string) bool) ([]string, error) {
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

// OwnApplication returns an application whose provider and clients may be changed: any but the console.
func (s *Clients) OwnApplication(ctx context.Context, application id.Ref) (applicationapi.Application, error) {
	app, err := s.Application.Application(ctx, application)
	if err == nil && app.Builtin {
		err = apierr.BadRequest.Because("the OpenID provider of the console and its clients cannot be changed")
	}
	return app, err
}

// IsScope reports whether a text is a scope (RFC 6749, section 3.3).
func IsScope(text string) bool {
	return text != "" && len(text) <= MaxText && !strings.ContainsFunc(text, func(r rune) bool {
		return r <= ' ' || r >= 0x7f || r == '"' || r == '\\'
	})
}
