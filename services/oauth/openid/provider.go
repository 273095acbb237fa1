package openid

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/oauth/attribute"
	"github.com/doorward/doorward/services/oauth/relyingparty"
	"github.com/doorward/doorward/services/oauth/signing"
	"github.com/doorward/doorward/services/oauth/store"
)

const maxScopes = 100

// The built-in scopes.
const (
	scopeOpenID  = "openid"
	scopeOffline = "offline_access"
)

// builtinScopes are the scopes that every provider has.
var builtinScopes = []string{scopeOpenID, "profile", "email", "phone", "address", scopeOffline, "groups",
	"organization"}

// reservedScope is the scope of the console alone.
const reservedScope = "management"

// standardClaims are the claims that the standards give a meaning, which no mapping may replace.
var standardClaims = []string{
	"iss", "sub", "aud", "exp", "nbf", "iat", "jti", "auth_time", "nonce", "acr", "amr", "azp", "sid", "cnf",
	"client_id", "scope", "at_hash",
	"c_hash", "s_hash", "act", "may_act", "events", "toe", "txn", "active", "username", "token_type", "org",
	"groups_overage",
}

// The places that a mapped claim may stand in.
const (
	inIDToken     = "ID_TOKEN"
	inAccessToken = "ACCESS_TOKEN"
	inUserInfo    = "USERINFO"
)

var places = []string{inIDToken, inAccessToken, inUserInfo}

// The values of issuerDomain: which host the issuer of a provider has.
const (
	issuerHost = "HOST"    // that of the deployment
	issuerSite = "ID_SITE" // the domain of the tenant's hosted pages
)

// withIssuer returns a provider with its issuer. One whose hosted pages have no domain yet is apierr.Unavailable: the
// domain of a new tenant arrives by an event.
func (s *Service) withIssuer(ctx context.Context, p store.OpenIDProvider) (store.OpenIDProvider, error) {
	origin := s.Base.Host()
	if p.Settings.IssuerDomain == issuerSite {
		site, err := s.Store.SiteDomain(ctx, p.TenantID)
		if errors.Is(err, apierr.NotFound) {
			err = apierr.Unavailable.Because("the domain of the ID site is not known here yet; try again in a few seconds")
		}
		if err != nil {
			return p, err
		}
		origin = s.Base.Origin(site.Domain)
	}
	p.Issuer = origin + "/oidc/" + p.ApplicationID.String()
	return p, nil
}

// defaultProvider is the provider of an application that was never changed.
func defaultProvider(app applicationapi.Application) store.OpenIDProvider {
	return store.OpenIDProvider{
		TenantID: app.TenantID, ApplicationID: app.ID, CreatedAt: app.CreatedAt, ModifiedAt: app.CreatedAt,
		Settings: store.OpenIDProviderSettings{
			Status: directoryapi.Enabled, IssuerDomain: issuerHost, Profile: relyingparty.ProfileNone,
			ClientRegistration: relyingparty.RegistrationNone, SigningAlgorithm: secure.RS256, IDTokenTTL: "PT1H", AuthorizationCodeTTL: "PT1M",
			RefreshTokenIdleTTL: "P30D", RefreshTokenGrace: "PT10S", Scopes: []store.OpenIDScope{},
			Claims: []store.ClaimMapping{},
		},
	}
}

// orDefault returns the provider of an application as it was read, or defaultProvider where none is stored, without its
// issuer.
func orDefault(app applicationapi.Application, p store.OpenIDProvider, err error) (store.OpenIDProvider, error) {
	if errors.Is(err, apierr.NotFound) {
		return defaultProvider(app), nil
	}
	p.Settings.IssuerDomain = cmp.Or(p.Settings.IssuerDomain, issuerHost)
	p.Settings.Profile = cmp.Or(p.Settings.Profile, relyingparty.ProfileNone)
	p.Settings.ClientRegistration = cmp.Or(p.Settings.ClientRegistration, relyingparty.RegistrationNone)
	return p, err
}

// Provider returns the OpenID provider of an application, or apierr.NotFound for the application.
func (s *Service) Provider(ctx context.Context, application id.Ref) (store.OpenIDProvider, error) {
	app, err := s.Application.Application(ctx, application)
	if err != nil {
		return store.OpenIDProvider{}, err
	}
	p, err := s.Store.OpenIDProvider(ctx, application)
	if p, err = orDefault(app, p, err); err != nil {
		return p, err
	}
	return s.withIssuer(ctx, p)
}

// SigningAlgorithm returns the algorithm by which an application signs its tokens.
func (s *Service) SigningAlgorithm(ctx context.Context, application id.Ref) (string, error) {
	p, err := s.Store.CachedOpenIDProvider(ctx, application)
	p, err = orDefault(applicationapi.Application{}, p, err)
	return p.Settings.SigningAlgorithm, err
}

// Lifetimes returns the lifetimes of tokens in the OAuth policy of an application, which a provider shows.
func (s *Service) Lifetimes(ctx context.Context, application id.Ref) (access, refresh string, err error) {
	p, err := s.Store.CachedPolicy(ctx, application.Tenant, application.ID)
	return p.AccessTokenTTL, p.RefreshTokenTTL, err
}

// ProviderChange is the body that updates a provider.
type ProviderChange struct {
	Status                    field.Text                      `json:"status"`
	IssuerDomain              field.Text                      `json:"issuerDomain"`
	Profile                   field.Text                      `json:"profile"`
	ClientRegistration        field.Text                      `json:"clientRegistration"`
	ClientIDMetadataDocuments field.Bool                      `json:"clientIdMetadataDocuments"`
	SigningAlgorithm          field.Text                      `json:"signingAlgorithm"`
	IDTokenTTL                field.Text                      `json:"idTokenTtl"`
	AuthorizationCodeTTL      field.Text                      `json:"authorizationCodeTtl"`
	RefreshTokenIdleTTL       field.Text                      `json:"refreshTokenIdleTtl"`
	RefreshTokenGrace         field.Text                      `json:"refreshTokenGrace"`
	Scopes                    field.Nullable[[]ScopeChange]   `json:"scopes"`
	Claims                    field.Nullable[[]MappingChange] `json:"claims"`
}

// ScopeChange is a scope in the body of a provider.
type ScopeChange struct {
	Name        string   `json:"name"`
	Description *string  `json:"description"`
	Resources   []string `json:"resources"`
	Consent     bool     `json:"consent"`
	Groups      []struct {
		Href string `json:"href"`
	} `json:"groups"`
}

// MappingChange is a claim in the body of a provider.
type MappingChange store.ClaimMapping

// UpdateProvider changes the members that the body names. That of the console is apierr.BadRequest.
func (s *Service) UpdateProvider(ctx context.Context, application id.Ref, in ProviderChange) (store.OpenIDProvider,
	error) {
	app, err := s.OwnApplication(ctx, application)
	if err != nil {
		return store.OpenIDProvider{}, err
	}
	_, refresh, err := s.Lifetimes(ctx, application)
	if err != nil {
		return store.OpenIDProvider{}, err
	}
	longest, err := field.ParseDuration(refresh)
	if err != nil {
		return store.OpenIDProvider{}, fmt.Errorf("read the OAuth policy of %s: %w", application.ID, err)
	}
	var p store.OpenIDProvider
	err = s.Store.Tx(ctx, func(tx *store.Tx) (err error) {
		locked, err := tx.LockOpenIDProvider(ctx, defaultProvider(app))
		if p, err = orDefault(app, locked, err); err != nil {
			return err
		}
		if err := s.applyProvider(in, &p.Settings, longest); err != nil {
			return err
		}
		if p, err = s.withIssuer(ctx, p); err != nil {
			return err
		}
		if p.Settings.Profile == relyingparty.ProfileFAPI2 {
			if err := relyingparty.CheckProvider(ctx, tx, application, p.Settings); err != nil {
				return err
			}
		}
		p.ModifiedAt = s.Now()
		return tx.UpdateOpenIDProvider(ctx, p)
	})
	return p, err
}

// applyProvider checks the members of a body and writes them into a provider.
func (s *Service) applyProvider(in ProviderChange, p *store.OpenIDProviderSettings, refresh time.Duration) error {
	var errs field.Errors
	errs.Enum(&p.Status, in.Status, "status", directoryapi.Enabled, directoryapi.Disabled)
	errs.Enum(&p.IssuerDomain, in.IssuerDomain, "issuerDomain", issuerHost, issuerSite)
	errs.Enum(&p.ClientRegistration, in.ClientRegistration, "clientRegistration", relyingparty.RegistrationNone,
		relyingparty.RegistrationToken, relyingparty.RegistrationOpen)
	if in.ClientIDMetadataDocuments.Null {
		errs.Add(apierr.Required.Because("clientIdMetadataDocuments cannot be null"))
	}
	p.ClientIDMetadataDocuments = in.ClientIDMetadataDocuments.Or(p.ClientIDMetadataDocuments)
	was := p.Profile
	errs.Enum(&p.Profile, in.Profile, "profile", relyingparty.ProfileNone, relyingparty.ProfileFAPI2)
	if p.Profile != was && p.Profile == relyingparty.ProfileFAPI2 {
		p.SigningAlgorithm = secure.PS256
	}
	errs.Enum(&p.SigningAlgorithm, in.SigningAlgorithm, "signingAlgorithm", secure.SigningAlgorithms...)
	lifetime(&errs, &p.IDTokenTTL, in.IDTokenTTL, "idTokenTtl", time.Second, signing.MaxDuration)
	lifetime(&errs, &p.AuthorizationCodeTTL, in.AuthorizationCodeTTL, "authorizationCodeTtl", time.Second, 10*time.Minute)
	lifetime(&errs, &p.RefreshTokenIdleTTL, in.RefreshTokenIdleTTL, "refreshTokenIdleTtl", time.Second, refresh)
	lifetime(&errs, &p.RefreshTokenGrace, in.RefreshTokenGrace, "refreshTokenGrace", 0, time.Minute)
	if in.Scopes.Present {
		scopes, err := s.scopes(in.Scopes.Value)
		errs.Add(err)
		p.Scopes = scopes
	}
	if in.Claims.Present {
		claims, err := mappings(in.Claims.Value, p.Scopes)
		errs.Add(err)
		p.Claims = claims
	}
	return errs.First()
}

func lifetime(errs *field.Errors, to *string, in field.Text, name string, least, most time.Duration) {
	errs.Set(to, in, false, func(in field.Text) (string, error) { return field.Duration(in, name, least, most) })
}

func (s *Service) scopes(in []ScopeChange) ([]store.OpenIDScope, error) {
	if len(in) > maxScopes {
		return nil, apierr.AboveMaximum.Because("scopes has %d items; at most %d are allowed", len(in), maxScopes)
	}
	scopes := []store.OpenIDScope{}
	for _, v := range in {
		known := func(other store.OpenIDScope) bool { return other.Name == v.Name }
		switch {
		case !relyingparty.IsScope(v.Name):
			return nil,
				apierr.Format.Because("scopes has the name %q; a name has 1 to %d characters, printable ASCII without space, \" and \\",
					v.Name, relyingparty.MaxText)
		case v.Name == reservedScope || slices.Contains(builtinScopes, v.Name) || slices.ContainsFunc(scopes, known):
			return nil, apierr.Format.Because("scopes has the name %q, which is reserved, built in, or there twice", v.Name)
		case v.Description != nil && len([]rune(*v.Description)) > 1000:
			return nil, apierr.TooLong.Because("the description of the scope %s has more than 1000 characters", v.Name)
		}
		scope := store.OpenIDScope{Name: v.Name, Description: v.Description, Consent: v.Consent, Groups: []id.ID{}}
		var err error
		if scope.Resources, err = relyingparty.URLs(field.Some(v.Resources), "scopes.resources", relyingparty.IsResource); err != nil {
			return nil, err
		}
		for _, link := range v.Groups {
			ref, ok := s.Base.Parse(link.Href)
			if !ok || ref.Kind != directoryapi.Groups {
				return nil, apierr.Reference.Because("the scope %s has %q in groups, which is not the href of a group", v.Name,
					link.Href)
			}
			scope.Groups = append(scope.Groups, ref.ID)
		}
		scopes = append(scopes, scope)
	}
	return scopes, nil
}

func mappings(in []MappingChange, scopes []store.OpenIDScope) ([]store.ClaimMapping, error) {
	if len(in) > maxScopes {
		return nil, apierr.AboveMaximum.Because("claims has %d items; at most %d are allowed", len(in), maxScopes)
	}
	claims := []store.ClaimMapping{}
	for _, m := range in {
		switch {
		case m.Claim == "" || len(m.Claim) > relyingparty.MaxText || slices.Contains(standardClaims, m.Claim):
			return nil,
				apierr.Format.Because("claims has the claim %q, which is empty, too long, or one of the standards' own", m.Claim)
		case !attribute.Is(m.Source):
			return nil, apierr.Format.Because("claims has the source %q, which is no attribute of an account", m.Source)
		case len(m.In) == 0:
			return nil, apierr.Required.Because("in of the claim %s is required: %s", m.Claim, field.Or(places))
		}
		for _, place := range m.In {
			if !slices.Contains(places, place) {
				return nil, apierr.Unsupported.Because("in of the claim %s must be %s", m.Claim, field.Or(places))
			}
		}
		for _, name := range m.Scopes {
			if !slices.Contains(builtinScopes, name) && !slices.ContainsFunc(scopes,
				func(v store.OpenIDScope) bool { return v.Name == name }) {
				return nil, apierr.Format.Because("the claim %s names the scope %q, which the provider does not have", m.Claim,
					name)
			}
		}
		m.Scopes = append([]string{}, m.Scopes...)
		claims = append(claims, store.ClaimMapping(m))
	}
	return claims, nil
}
