package relyingparty

import (
	"bytes"
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/list"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/oauth/store"
)

// Who may register clients at a provider (RFC 7591).
const (
	RegistrationNone  = "NONE"
	RegistrationToken = "TOKEN" // who has an initial access token
	RegistrationOpen  = "OPEN"  // everybody
)

// MaxRegistered is how many clients of a tenant may have registered themselves.
const MaxRegistered = 10_000

const (
	maxRegistrationUses = 10_000
	maxRegistrationAge  = 365 * 24 * time.Hour
	registrationAge     = 24 * time.Hour // by default
	// maxUnused is how long a client that has registered itself is kept without a login, so that not everybody can fill
	// MaxRegistered for ever.
	maxUnused   = 30 * 24 * time.Hour
	maxMetadata = 64 << 10 // bytes
)

// registeredGrants are the grant types that a client may register itself with: those in which a user decides.
var registeredGrants = []string{GrantCode, GrantRefresh, GrantDevice}

// metadata are the members of client metadata (RFC 7591, section 2; OpenID Connect Registration, section 2) whose
// names are those of the interface in another spelling. client_name and scope stand beside them.
var metadata = []string{
	"application_type", "redirect_uris", "post_logout_redirect_uris", "grant_types", "response_types",
	"token_endpoint_auth_method", "token_endpoint_auth_signing_alg", "request_object_signing_alg", "jwks", "jwks_uri",
	"require_pushed_authorization_requests", "require_signed_request_object", "dpop_bound_access_tokens",
	"id_token_signed_response_alg", "userinfo_signed_response_alg", "subject_type", "sector_identifier_uri",
	"default_max_age", "require_auth_time", "default_acr_values", "initiate_login_uri", "frontchannel_logout_uri",
	"backchannel_logout_uri", "backchannel_logout_session_required", "logo_uri", "client_uri", "policy_uri", "tos_uri",
	"contacts",
}

// memberOf is the name of a metadata member in the interface: redirectUris for redirect_uris.
func memberOf(name string) string {
	words := strings.Split(name, "_")
	for i, word := range words[1:] {
		words[i+1] = strings.ToUpper(word[:1]) + word[1:]
	}
	return strings.Join(words, "")
}

// Registered is a client that has registered itself. The secrets stand in this answer alone.
type Registered struct {
	store.OpenIDClient
	Secret secure.Secret // client_secret; "": it has none, or it is not shown again
	Access secure.Secret // registration_access_token
}

// Metadata is the client information response (RFC 7591, section 3.2.1; RFC 7592, section 3) with the address at which
// the client changes itself.
func (r Registered) Metadata(address string) (map[string]any, error) {
	text, err := json.Marshal(r.Settings)
	if err != nil {
		return nil, err
	}
	members := map[string]any{}
	if err := json.Unmarshal(text, &members); err != nil {
		return nil, err
	}
	out := map[string]any{
		"client_id": r.ClientID, "client_id_issued_at": r.CreatedAt.Unix(), "client_name": r.Name,
		"registration_client_uri": address, "registration_access_token": r.Access.Reveal(),
	}
	for _, name := range metadata {
		if value := members[memberOf(name)]; value != nil {
			out[name] = value
		}
	}
	if r.Settings.ApplicationType != TypeNative {
		out["application_type"] = TypeWeb // browser is a type of ours
	}
	if r.Settings.Scopes != nil {
		out["scope"] = strings.Join(r.Settings.Scopes, " ")
	}
	if r.Secret != "" {
		out["client_secret"], out["client_secret_expires_at"] = r.Secret.Reveal(), 0
	}
	return out, nil
}

// refuseMetadata is an error of RFC 7591, section 3.2.2.
func refuseMetadata(code, reason string) error {
	return apierr.BadRequest.Because("%s", reason).With("error", code)
}

// errRegistration refuses a token of registration without telling why.
var errRegistration = apierr.Unauthorized.Because("the token of the registration is missing, unknown, used or expired").
	With("error", "invalid_token")

// readMetadata returns client metadata as the body that creates a client, with the authentication method of one that
// names none. Members that it does not know are ignored (RFC 7591, section 2).
func readMetadata(body []byte, method string) (in Change, err error) {
	sent := map[string]json.RawMessage{}
	if len(body) > maxMetadata || json.Unmarshal(body, &sent) != nil {
		return in, refuseMetadata("invalid_client_metadata", "the body must be a JSON object of at most 64 KiB")
	}
	members := map[string]json.RawMessage{}
	for _, name := range metadata {
		if value, ok := sent[name]; ok && !bytes.Equal(value, []byte("null")) {
			members[memberOf(name)] = value
		}
	}
	text, err := json.Marshal(members)
	if err != nil {
		return in, err
	}
	if err := field.DecodeKnown(text, &in); err != nil {
		return in, refuseMetadata("invalid_client_metadata", apierr.From(err).Reason)
	}
	var rest struct {
		Name  string  `json:"client_name"`
		Scope *string `json:"scope"`
	}
	if err := json.Unmarshal(body, &rest); err != nil {
		return in, refuseMetadata("invalid_client_metadata", "client_name and scope must be strings")
	}
	in.Name = field.Some(rest.Name)
	if rest.Scope != nil {
		in.Scopes = field.Some(strings.Fields(*rest.Scope))
	}
	if !in.GrantTypes.Present {
		in.GrantTypes = field.Some([]string{GrantCode})
	}
	if !in.TokenEndpointAuthMethod.Present {
		in.TokenEndpointAuthMethod = field.Some(method)
	}
	in.Consent = field.Some(ConsentRequired)
	// A client without authentication is one of the types of ours, which the standards do not name.
	if in.TokenEndpointAuthMethod.Value == AuthNone && in.ApplicationType.Value != TypeNative {
		in.ApplicationType = field.Some(TypeBrowser)
		if !slices.ContainsFunc(in.RedirectURIs.Value, func(uri string) bool { return strings.HasPrefix(uri, "https:") }) {
			in.ApplicationType = field.Some(TypeNative)
		}
	}
	return in, nil
}

// registeredClient returns a new client of a registration request.
func (in Change) registeredClient(c *store.OpenIDClient, profile string) error {
	if in.Name.Value == "" {
		in.Name = field.Some(c.ClientID)
	}
	kind := in.ApplicationType.Or(TypeWeb)
	if !slices.Contains([]string{TypeWeb, TypeNative, TypeBrowser}, kind) {
		return refuseMetadata("invalid_client_metadata", "application_type must be web or native")
	}
	for _, uri := range in.RedirectURIs.Value {
		if !IsRedirectURI(uri, kind) {
			return refuseMetadata("invalid_redirect_uri", "redirect_uris has an address that cannot be registered: "+uri)
		}
	}
	for _, grant := range in.GrantTypes.Value {
		if !slices.Contains(registeredGrants, grant) {
			return refuseMetadata("invalid_client_metadata", "grant_types may have "+field.Or(registeredGrants))
		}
	}
	c.Settings = newSettings(kind, profile)
	err := in.apply(c, profile, true)
	if apierr.IsRefusal(err) {
		return refuseMetadata("invalid_client_metadata", apierr.From(err).Reason)
	}
	if err != nil {
		return err
	}
	if slices.Contains(c.Settings.GrantTypes, GrantCode) && len(c.Settings.RedirectURIs) == 0 {
		return refuseMetadata("invalid_redirect_uri", "redirect_uris is missing")
	}
	return nil
}

// Register registers a client at a provider by its metadata (RFC 7591, section 3.1). initial is the initial access
// token, nil where everybody may register.
func (s *Clients) Register(ctx context.Context, application id.Ref, initial *secure.Secret,
	body []byte) (out Registered, err error) {
	profile, err := s.profile(ctx, application)
	if err != nil {
		return out, err
	}
	in, err := readMetadata(body, AuthBasic)
	if err != nil {
		return out, err
	}
	now := s.Now()
	unused := now.Add(maxUnused)
	out.OpenIDClient = store.OpenIDClient{
		TenantID: application.Tenant, ID: id.New(now), ApplicationID: application.ID, Status: directoryapi.Enabled,
		UnusedUntil: &unused, CreatedAt: now, ModifiedAt: now,
	}
	out.ClientID = out.ID.String()
	if err := in.registeredClient(&out.OpenIDClient, profile); err != nil {
		return out, err
	}
	if err := s.checkRegisteredSector(ctx, out.Settings); err != nil {
		return out, err
	}
	out.Access = secure.Token(SecretLength)
	out.RegistrationDigest = secure.Digest(out.Access)
	if strings.HasPrefix(out.Settings.TokenEndpointAuthMethod, "client_secret") {
		out.Secret = secure.Token(SecretLength)
	}
	insert := func() error {
		return s.Store.Tx(ctx, func(tx *store.Tx) error {
			return s.insertRegistered(ctx, tx, out, application, initial, now)
		})
	}
	err = insert()
	if errors.Is(err, apierr.Exists) { // another client of the application has the name
		out.Name += " (" + out.ClientID + ")"
		err = insert()
	}
	return out, err
}

func (s *Clients) insertRegistered(ctx context.Context, tx *store.Tx, c Registered, application id.Ref,
	initial *secure.Secret, now time.Time) error {
	if initial != nil {
		err := tx.UseRegistrationToken(ctx, application, secure.Digest(*initial), now)
		if errors.Is(err, apierr.NotFound) {
			return errRegistration
		}
		if err != nil {
			return err
		}
	}
	n, err := tx.LockRegistrations(ctx, application.Tenant)
	if err != nil {
		return err
	}
	if n >= MaxRegistered {
		return apierr.TooMany.Because("%d clients of the tenant have registered themselves: no more may", n).
			With("error", "temporarily_unavailable")
	}
	if c.Secret != "" {
		tx.InsertClientSecret(store.ClientSecret{TenantID: c.TenantID, ClientID: c.ID, ID: id.New(now),
			Digest: secure.Digest(c.Secret), CreatedAt: now, UnusedUntil: c.UnusedUntil})
	}
	return tx.InsertOpenIDClient(ctx, c.OpenIDClient)
}

// HasEnded reports whether a client that has registered itself has ended without a login.
func HasEnded(c store.OpenIDClient, now time.Time) bool {
	return c.UnusedUntil != nil && !now.Before(*c.UnusedUntil)
}

// Registration returns a client that has registered itself, by the token that it was given then (RFC 7592, section 2.1).
func (s *Clients) Registration(ctx context.Context, application id.Ref, client id.ID, access secure.Secret) (Registered,
	error) {
	c, err := s.Store.OpenIDClient(ctx, id.Ref{Tenant: application.Tenant, ID: client})
	if errors.Is(err, apierr.NotFound) || err == nil && (c.ApplicationID != application.ID || c.RegistrationDigest == nil ||
		c.Status != directoryapi.Enabled || HasEnded(c, s.Now()) ||
		subtle.ConstantTimeCompare(c.RegistrationDigest, secure.Digest(access)) != 1) {
		err = errRegistration
	}
	return Registered{OpenIDClient: c, Access: access}, err
}

// UpdateRegistration replaces the metadata of a client that has registered itself: a member that is not sent gets its
// default (RFC 7592, section 2.2). The authentication method stays: a secret is shown once.
func (s *Clients) UpdateRegistration(ctx context.Context, application id.Ref, client id.ID, access secure.Secret,
	body []byte) (Registered, error) {
	now, err := s.Registration(ctx, application, client, access)
	if err != nil {
		return now, err
	}
	var named struct {
		ClientID string        `json:"client_id"`
		Secret   secure.Secret `json:"client_secret"`
	}
	in, err := readMetadata(body, AuthBasic)
	if err != nil {
		return now, err
	}
	if json.Unmarshal(body, &named) != nil || named.ClientID != now.ClientID {
		return now, refuseMetadata("invalid_client_metadata", "client_id must be that of the client")
	}
	if named.Secret != "" {
		ok, err := s.CheckSecret(ctx, now.OpenIDClient, named.Secret)
		if err != nil {
			return now, err
		}
		if !ok {
			return now, refuseMetadata("invalid_client_metadata", "client_secret is not that of the client")
		}
	}
	profile, err := s.profile(ctx, application)
	if err != nil {
		return now, err
	}
	changed := now.OpenIDClient
	if err := in.registeredClient(&changed, profile); err != nil {
		return now, err
	}
	if err := s.checkRegisteredSector(ctx, changed.Settings); err != nil {
		return now, err
	}
	ref := id.Ref{Tenant: application.Tenant, ID: client}
	err = s.Store.Tx(ctx, func(tx *store.Tx) error {
		c, err := tx.LockOpenIDClient(ctx, ref)
		if err != nil {
			return err
		}
		method, name := c.Settings.TokenEndpointAuthMethod, c.Name
		if err := in.registeredClient(&c, profile); err != nil {
			return err
		}
		if c.Settings.TokenEndpointAuthMethod != method {
			return refuseMetadata("invalid_client_metadata", "token_endpoint_auth_method cannot be changed")
		}
		if in.Name.Value != "" && strings.HasPrefix(name, in.Name.Value+" (") {
			c.Name = name // the client has it with its id, because another one has the name
		}
		c.ModifiedAt = s.Now()
		now.OpenIDClient = c
		return tx.UpdateOpenIDClient(ctx, c)
	})
	if errors.Is(err, apierr.Exists) {
		err = refuseMetadata("invalid_client_metadata", "client_name is that of another client")
	}
	return now, err
}

// DeleteRegistration deletes a client that has registered itself (RFC 7592, section 2.3).
func (s *Clients) DeleteRegistration(ctx context.Context, application id.Ref, client id.ID, access secure.Secret) error {
	if _, err := s.Registration(ctx, application, client, access); err != nil {
		return err
	}
	return s.DeleteClient(ctx, id.Ref{Tenant: application.Tenant, ID: client})
}

// TokenChange is the body that makes an initial access token.
type TokenChange struct {
	ExpiresAt field.Text `json:"expiresAt"` // by default in a day
	Uses      field.Int  `json:"uses"`      // by default 1
}

// NewRegistrationToken is an initial access token with its text, which is shown once.
type NewRegistrationToken struct {
	store.RegistrationToken
	Text secure.Secret
}

// CreateRegistrationToken makes an initial access token of a provider.
func (s *Clients) CreateRegistrationToken(ctx context.Context, application id.Ref,
	in TokenChange) (out NewRegistrationToken, err error) {
	if _, err := s.OwnApplication(ctx, application); err != nil {
		return out, err
	}
	now := s.Now()
	out.Text = secure.Token(SecretLength)
	out.RegistrationToken = store.RegistrationToken{
		TenantID: application.Tenant, ID: id.New(now), ApplicationID: application.ID, Digest: secure.Digest(out.Text),
		CreatedAt: now, ExpiresAt: now.Add(registrationAge),
	}
	var errs field.Errors
	if in.ExpiresAt.Given() {
		at, err := time.Parse(time.RFC3339, in.ExpiresAt.Value)
		switch {
		case err != nil:
			errs.Add(apierr.Format.Because("expiresAt must be a time of the form 2026-11-28T12:00:00Z"))
		case !at.After(now):
			errs.Add(apierr.Format.Because("expiresAt must be in the future"))
		case at.After(now.Add(maxRegistrationAge)):
			errs.Add(apierr.AfterMaximum.Because("expiresAt must be at most a year ahead"))
		}
		out.ExpiresAt = at
	}
	out.Uses, err = field.Whole(in.Uses, "uses", 1, 1, maxRegistrationUses)
	errs.Add(err)
	if err := errs.First(); err != nil {
		return out, err
	}
	return out, s.Store.Tx(ctx, func(tx *store.Tx) error {
		tx.InsertRegistrationToken(out.RegistrationToken)
		return nil
	})
}

// RegistrationTokens returns the initial access tokens of a provider that may still be used, without their texts.
func (s *Clients) RegistrationTokens(ctx context.Context, application id.Ref,
	query list.Query) (list.Page[store.RegistrationToken], error) {
	app, err := s.Application.Application(ctx, application)
	if err != nil {
		return list.Page[store.RegistrationToken]{}, err
	}
	tokens, err := s.Store.RegistrationTokens(ctx, application, s.Now())
	return pageOf(query.WithParentTimes(app.CreatedAt, app.ModifiedAt), tokens), err
}

// DeleteRegistrationToken ends an initial access token, or returns apierr.NotFound.
func (s *Clients) DeleteRegistrationToken(ctx context.Context, application id.Ref, token id.ID) error {
	return s.Store.Tx(ctx, func(tx *store.Tx) error { return tx.DeleteRegistrationToken(ctx, application, token) })
}
