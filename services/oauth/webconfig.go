package oauth

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/api/mfaapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/services/oauth/store"
)

// MeExpansions are the links that the endpoint /me can expand, in the order of its answer.
var MeExpansions = []string{"apiKeys", "applications", "customData", "directory", "groupMemberships", "groups", "providerData", "tenant"}

// WebConfig is the web config of an application, with the application, which has the DNS
// label of the Client API.
type WebConfig struct {
	store.WebConfig
	Application applicationapi.Application
	DomainName  string // of the Client API; empty for the console, which has none
}

// WebConfigChange is the body that updates a web config.
type WebConfigChange struct {
	DNSLabel       field.Text                      `json:"dnsLabel"`
	Status         field.Text                      `json:"status"`
	OAuth2         field.Nullable[EndpointsChange] `json:"oauth2"`
	Register       field.Nullable[EndpointsChange] `json:"register"`
	Login          field.Nullable[EndpointsChange] `json:"login"`
	VerifyEmail    field.Nullable[EndpointsChange] `json:"verifyEmail"`
	ForgotPassword field.Nullable[EndpointsChange] `json:"forgotPassword"`
	ChangePassword field.Nullable[EndpointsChange] `json:"changePassword"`
	Me             field.Nullable[MeChange]        `json:"me"`
	MFA            field.Nullable[MFAChange]       `json:"mfa"`
	SigningAPIKey  field.Link                      `json:"signingApiKey"`
}

// EndpointsChange turns endpoints on or off.
type EndpointsChange struct {
	Enabled field.Bool `json:"enabled"`
}

// UnmarshalJSON reads the members, and refuses others.
func (in *EndpointsChange) UnmarshalJSON(data []byte) error {
	type members EndpointsChange // without this method
	return field.Nested(data, (*members)(in), nil)
}

// MeChange changes the endpoint me. Expand names some of MeExpansions.
type MeChange struct {
	Enabled field.Bool                            `json:"enabled"`
	Expand  field.Nullable[map[string]field.Bool] `json:"expand"`
}

// UnmarshalJSON reads the members, and refuses others.
func (in *MeChange) UnmarshalJSON(data []byte) error {
	type members MeChange
	return field.Nested(data, (*members)(in), nil)
}

// MFAChange changes whether a login needs a second factor, and its types.
type MFAChange struct {
	Required    field.Bool `json:"required"`
	FactorTypes field.List `json:"factorTypes"`
}

// UnmarshalJSON reads the members, and refuses others.
func (in *MFAChange) UnmarshalJSON(data []byte) error {
	type members MFAChange
	return field.Nested(data, (*members)(in), nil)
}

// WebConfig returns a web config, or apierr.NotFound. A web config that was never changed is
// the default, as old as the application.
func (s *Service) WebConfig(ctx context.Context, config id.Ref) (WebConfig, error) {
	app, err := s.peers.Application.ApplicationOfWebConfig(ctx, config)
	if err != nil {
		return WebConfig{}, err
	}
	c, err := s.store.WebConfig(ctx, app.TenantID, app.ID)
	if errors.Is(err, apierr.NotFound) {
		c, err = defaultWebConfig(app), nil
	}
	if err != nil {
		return WebConfig{}, err
	}
	return s.withoutDeletedKey(ctx, app, c)
}

// cachedWebConfig returns the web config of an application from the cache, without a call of
// the application service: the default then has no times and no signing key.
func (s *Service) cachedWebConfig(ctx context.Context, tenant, application id.ID) (store.WebConfig, error) {
	c, err := s.store.CachedWebConfig(ctx, tenant, application)
	if errors.Is(err, apierr.NotFound) {
		return defaultWebConfig(applicationapi.Application{TenantID: tenant, ID: application}), nil
	}
	return c, err
}

// defaultWebConfig returns the web config of an application that nobody has changed. All
// endpoints are enabled, but for the console, which has no Client API
// (docs/interface/client-api.md#web-config). Tokens are signed with the API key that
// created the application.
func defaultWebConfig(app applicationapi.Application) store.WebConfig {
	status := directoryapi.Enabled
	if app.Builtin {
		status = directoryapi.Disabled
	}
	return store.WebConfig{
		TenantID: app.TenantID, ApplicationID: app.ID, Status: status,
		OAuth2: true, Register: true, Login: true, Me: true, MeExpand: []string{},
		MFA: store.MFA{FactorTypes: mfaapi.Types}, SigningKeyID: app.CreatedBy,
		CreatedAt: app.CreatedAt, ModifiedAt: app.CreatedAt,
	}
}

// IsDefaultMFA reports whether the second factor is configured as in defaultWebConfig.
func IsDefaultMFA(mfa store.MFA) bool {
	return !mfa.Required && slices.Equal(mfa.FactorTypes, mfaapi.Types)
}

// withoutDeletedKey returns a web config with its application, as clients see it: without
// the signing key where that was deleted.
func (s *Service) withoutDeletedKey(ctx context.Context, app applicationapi.Application, c store.WebConfig) (WebConfig, error) {
	if c.SigningKeyID != "" {
		_, err := s.store.APIKey(ctx, c.TenantID, c.SigningKeyID)
		if err != nil && !errors.Is(err, apierr.NotFound) {
			return WebConfig{}, err
		}
		if err != nil {
			c.SigningKeyID = ""
		}
	}
	return WebConfig{WebConfig: c, Application: app, DomainName: app.DomainName(s.cfg.Suffix)}, nil
}

// UpdateWebConfig changes the members that the body names. The DNS label is changed by the
// application service, after all other members are checked, so that a refused body changes
// nothing.
func (s *Service) UpdateWebConfig(ctx context.Context, config id.Ref, in WebConfigChange) (WebConfig, error) {
	before, err := s.WebConfig(ctx, config)
	if err != nil {
		return WebConfig{}, err
	}
	app := before.Application
	key, err := s.checkSigningKey(ctx, before, in.SigningAPIKey)
	errs := field.Errors{err}
	if in.DNSLabel.Present && strings.TrimSpace(in.DNSLabel.Or("")) == "" && app.DNSLabel != "" {
		errs.Add(apierr.Required.Because("dnsLabel is required; it cannot be null, empty or blank"))
	}
	trial := defaultWebConfig(app)
	errs.Add(in.apply(&trial, key))
	if err := errs.First(); err != nil {
		return WebConfig{}, err
	}
	if app.Builtin && trial.Status == directoryapi.Enabled {
		return WebConfig{}, apierr.BadRequest.Because("the console application has no Client API that could be enabled")
	}
	if label := in.DNSLabel.Or(""); in.DNSLabel.Present && label != app.DNSLabel {
		if app, err = s.peers.Application.SetDNSLabel(ctx, applicationapi.SetDNSLabel{Tenant: app.TenantID, Application: app.ID,
			Label: label}); err != nil {
			return WebConfig{}, err
		}
	}
	var c store.WebConfig
	err = s.store.Tx(ctx, func(tx *store.Tx) (err error) {
		if c, err = tx.LockWebConfig(ctx, defaultWebConfig(app)); err != nil {
			return err
		}
		if err := in.apply(&c, key); err != nil {
			return err
		}
		c.ModifiedAt = s.now()
		return tx.UpdateWebConfig(ctx, c)
	})
	if err != nil {
		return WebConfig{}, err
	}
	return s.withoutDeletedKey(ctx, app, c)
}

// checkSigningKey returns the id of the API key that a link names, empty for none. A key
// that is not an enabled key of an administrator of the tenant is apierr.Reference, unless
// the web config has it already: clients send back what they have read.
func (s *Service) checkSigningKey(ctx context.Context, before WebConfig, link field.Link) (string, error) {
	if !link.Given() {
		return "", nil
	}
	refused := apierr.Reference.Because("signingApiKey must be an enabled API key of an administrator of the tenant")
	keyID, ok := s.cfg.Base.Last("apiKeys", link.Value.Href)
	if !ok || !isAPIKeyID(keyID) {
		return "", refused
	}
	if keyID == before.SigningKeyID {
		return keyID, nil
	}
	k, err := s.store.APIKey(ctx, before.TenantID, keyID)
	if errors.Is(err, apierr.NotFound) {
		return "", refused
	}
	if err != nil {
		return "", err
	}
	_, err = s.checkAdministrator(ctx, k)
	if errors.Is(err, errBadAPIKey) || err == nil && k.Status != directoryapi.Enabled {
		return "", refused
	}
	return keyID, err
}

// apply checks the members of a body and writes them into a web config. key is the id of
// the API key that signingApiKey names.
func (in WebConfigChange) apply(c *store.WebConfig, key string) (err error) {
	var errs field.Errors
	errs.Enum(&c.Status, in.Status, "status", directoryapi.Enabled, directoryapi.Disabled)
	for _, endpoints := range []struct {
		name string
		in   field.Nullable[EndpointsChange]
		on   *bool
	}{{"oauth2", in.OAuth2, &c.OAuth2}, {"register", in.Register, &c.Register}, {"login", in.Login, &c.Login}} {
		errs.Add(applyMember(endpoints.on, endpoints.in, endpoints.in.Value.Enabled, endpoints.name, "enabled"))
	}
	for _, endpoints := range []struct {
		name string
		in   field.Nullable[EndpointsChange]
		on   **bool
	}{{"verifyEmail", in.VerifyEmail, &c.VerifyEmail}, {"forgotPassword", in.ForgotPassword, &c.ForgotPassword},
		{"changePassword", in.ChangePassword, &c.ChangePassword}} {
		errs.Add(applyOptionalSwitch(endpoints.on, endpoints.in, endpoints.name))
	}
	errs.Add(in.applyMe(c))
	if in.SigningAPIKey.Present {
		c.SigningKeyID = key
	}
	errs.Add(in.applyMFA(&c.MFA))
	return errs.First()
}

// applyMember writes the member of an object into a value. Neither the object nor the member
// may be null.
func applyMember[Object, T any](value *T, of field.Nullable[Object], member field.Nullable[T], object, name string) error {
	if of.Null || member.Null {
		return apierr.Required.Because("%s.%s cannot be null", object, name)
	}
	*value = member.Or(*value)
	return nil
}

// applyOptionalSwitch is applyMember for a member that may be null: the endpoint is then
// enabled as the default directory of the application says.
func applyOptionalSwitch(on **bool, in field.Nullable[EndpointsChange], object string) error {
	switch enabled := in.Value.Enabled; {
	case in.Null:
		return apierr.Required.Because("%s cannot be null; its member enabled can", object)
	case enabled.Null:
		*on = nil
	case enabled.Present:
		*on = &enabled.Value
	}
	return nil
}

func (in WebConfigChange) applyMe(c *store.WebConfig) error {
	me := in.Me.Value
	if err := applyMember(&c.Me, in.Me, me.Enabled, "me", "enabled"); err != nil {
		return err
	}
	if me.Expand.Null {
		return apierr.Required.Because("me.expand cannot be null")
	}
	for _, name := range slices.Sorted(maps.Keys(me.Expand.Value)) {
		on := me.Expand.Value[name]
		switch {
		case !slices.Contains(MeExpansions, name):
			return apierr.UnknownProperty.Because("the property %q is unknown in me.expand", name)
		case on.Null:
			return apierr.Required.Because("me.expand.%s cannot be null", name)
		}
		c.MeExpand = slices.DeleteFunc(slices.Clone(c.MeExpand), func(shown string) bool { return shown == name })
		if on.Value {
			c.MeExpand = append(c.MeExpand, name)
		}
	}
	return nil
}

func (in WebConfigChange) applyMFA(mfa *store.MFA) error {
	change := in.MFA.Value
	if err := applyMember(&mfa.Required, in.MFA, change.Required, "mfa", "required"); err != nil {
		return err
	}
	if !change.FactorTypes.Present {
		return nil
	}
	types := []string{}
	for _, text := range change.FactorTypes.Or(nil) {
		kind, err := field.Enum(field.Some(text), "mfa.factorTypes", "", mfaapi.Types...)
		if err != nil {
			return err
		}
		if !slices.Contains(types, kind) {
			types = append(types, kind)
		}
	}
	if len(types) == 0 {
		return apierr.Required.Because("mfa.factorTypes needs at least one of %s", strings.Join(mfaapi.Types, ", "))
	}
	mfa.FactorTypes = types
	return nil
}
