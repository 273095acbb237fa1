package saml

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/mappingrule"
	"github.com/doorward/doorward/pkg/saml"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/application/store"
)

const (
	// maxClockAhead is the clock skew that is allowed for a service provider: an IssueInstant may be
	// that far in the future.
	maxClockAhead = 5 * time.Minute
	// maxRequestAge is how long an AuthnRequest is good: whoever finds an old one, in a log or a
	// history, cannot begin a login with it.
	maxRequestAge = 10 * time.Minute
)

// AuthnVerificationRequest is the body that requests the verification of an AuthnRequest of a
// service provider (docs/interface/applications.md#saml-identity-provider).
type AuthnVerificationRequest struct {
	SAMLRequest field.Text `json:"samlRequest"`
	RelayState  field.Text `json:"relayState"`
	QueryString field.Text `json:"queryString"` // of the browser's request; has the signature
}

// AuthnVerification is an AuthnRequest that was verified.
type AuthnVerification struct {
	RelayState      *string // of the request, or else the default of the registration
	ServiceProvider id.ID
	RequestID       string
	IssuedAt        time.Time

	request saml.Request
}

// VerifyAuthnRequest verifies an AuthnRequest of a service provider: its signature (which may be
// in the query or in the XML, pkg/saml), its time, its issuer and its assertion consumer
// service. A malformed request or a wrong signature is apierr.Format, an unknown service
// provider apierr.Reference, and one whose registration is missing or disabled
// apierr.UnusableStatus.
func (s *Service) VerifyAuthnRequest(ctx context.Context, at id.Ref,
	in AuthnVerificationRequest) (AuthnVerification, error) {
	identity, err := s.SAMLIdentityProvider(ctx, at)
	if err != nil {
		return AuthnVerification{}, err
	}
	encoded, err := field.Required(in.SAMLRequest, "samlRequest", saml.MaxRequest)
	if err != nil {
		return AuthnVerification{}, err
	}
	relayState, err := field.Optional(in.RelayState, "relayState", maxRelayState)
	if err != nil {
		return AuthnVerification{}, err
	}
	query, err := saml.ParseQuery(in.QueryString.Or(""))
	if err != nil {
		return AuthnVerification{}, err
	}
	request, err := saml.ParseRequest(encoded)
	if err != nil {
		return AuthnVerification{}, err
	}
	if err := s.checkNotInFuture("the IssueInstant of samlRequest", request.IssuedAt); err != nil {
		return AuthnVerification{}, err
	}
	if s.now().Sub(request.IssuedAt) > maxRequestAge {
		return AuthnVerification{}, apierr.Format.Because(
			"samlRequest is older than %s; begin again at the service provider",
			maxRequestAge)
	}
	provider, err := s.store.SAMLServiceProviderOfEntity(ctx, at.Tenant, request.Issuer)
	if errors.Is(err, apierr.NotFound) {
		return AuthnVerification{}, apierr.Reference.Because(
			"samlRequest: no service provider with the entityId %q is registered", request.Issuer)
	}
	if err != nil {
		return AuthnVerification{}, err
	}
	registration, err := s.enabledRegistration(ctx, identity, provider)
	if err != nil {
		return AuthnVerification{}, err
	}
	if request.ConsumerURL != "" && request.ConsumerURL != provider.AssertionConsumerServiceURL {
		return AuthnVerification{}, apierr.Format.Because(
			"samlRequest must have the registered assertionConsumerServiceUrl, or none")
	}
	if provider.MustSignRequests() && !query.IsSigned() && !request.IsSigned() {
		return AuthnVerification{}, apierr.Format.Because(
			"samlRequest has no signature, and requestsMustBeSigned of the service provider is true; send " +
				"queryString with the signature")
	}
	allowSHA1 := identity.SignatureAlgorithm == saml.SHA1
	if query.IsSigned() {
		if provider.EncodedX509Certificate == nil {
			return AuthnVerification{}, apierr.Format.Because(
				"queryString has a signature; set encodedX509Certificate of the service provider, so that it can be " +
					"verified")
		}
		if err := query.Verify(encoded, in.RelayState.Or(""), *provider.EncodedX509Certificate, allowSHA1); err != nil {
			return AuthnVerification{}, err
		}
	}
	if request.IsSigned() {
		if provider.EncodedX509Certificate == nil {
			return AuthnVerification{}, apierr.Format.Because(
				"samlRequest has a signature; set encodedX509Certificate of the service provider, so that it can be " +
					"verified")
		}
		if request, err = request.Verify(*provider.EncodedX509Certificate, allowSHA1); err != nil {
			return AuthnVerification{}, err
		}
	}
	if relayState == nil || *relayState == "" {
		relayState = registration.DefaultRelayState
	}
	return AuthnVerification{relayState, provider.ID, request.ID, request.IssuedAt, request}, nil
}

// errNotRegistered is the error of enabledRegistration where there is no registration.
var errNotRegistered = errors.New("the service provider is not registered with the identity provider")

// enabledRegistration returns the registration of a service provider with an identity provider,
// or apierr.UnusableStatus where the registration is missing (errNotRegistered too), or it or the
// identity provider is disabled.
func (s *Service) enabledRegistration(
	ctx context.Context, identity IdentityProvider, provider store.SAMLServiceProvider,
) (store.SAMLRegistration, error) {
	if identity.Status != directoryapi.Enabled {
		return store.SAMLRegistration{}, apierr.UnusableStatus.Because("the identity provider is disabled")
	}
	registration, err := s.store.SAMLRegistrationOf(ctx, id.Ref{Tenant: identity.TenantID, ID: identity.ID},
		provider.ID)
	switch {
	case errors.Is(err, apierr.NotFound):
		err = errors.Join(apierr.UnusableStatus.Because(
			"the service provider %q is not registered with the identity provider", provider.EntityID),
			errNotRegistered)
	case err == nil && registration.Status != directoryapi.Enabled:
		err = apierr.UnusableStatus.Because("the registration of the service provider %q is disabled",
			provider.EntityID)
	}
	return registration, err
}

func (s *Service) checkNotInFuture(name string, at time.Time) error {
	if at.After(s.now().Add(maxClockAhead)) {
		return apierr.Format.Because("%s must not be in the future", name)
	}
	return nil
}

// ResponseRequest is the body that requests the response to an AuthnRequest that was
// verified.
type ResponseRequest struct {
	Account           field.Link              `json:"account"`
	ServiceProvider   field.Link              `json:"serviceProvider"`
	RequestID         field.Text              `json:"requestId"`
	AuthnIssueInstant field.Nullable[Instant] `json:"authnIssueInstant"`
}

// Instant is a time of a body: a datetime, or a number of milliseconds since 1970, which is
// converted to a datetime.
type Instant string

// UnmarshalJSON decodes either form.
func (i *Instant) UnmarshalJSON(data []byte) error {
	if since, err := strconv.ParseInt(string(data), 10, 64); err == nil {
		*i = Instant(time.UnixMilli(since).UTC().Format(time.RFC3339Nano))
		return nil
	}
	return json.Unmarshal(data, (*string)(i))
}

// check checks the members of the body: first those that are required, then their formats.
func (in ResponseRequest) check(s *Service) error {
	for _, required := range []struct {
		name  string
		given bool
	}{
		{"account", in.Account.Given()}, {"serviceProvider", in.ServiceProvider.Given()},
		{"requestId", !isBlank(in.RequestID.Or(""))},
		{"authnIssueInstant", !isBlank(string(in.AuthnIssueInstant.Or("")))},
	} {
		if !required.given {
			return apierr.Required.Because("%s is required; it cannot be null, empty or blank", required.name)
		}
	}
	if err := saml.CheckMessageID("requestId", in.RequestID.Value); err != nil {
		return err
	}
	issued, err := time.Parse(time.RFC3339, string(in.AuthnIssueInstant.Value))
	if err != nil {
		return apierr.Format.Because("authnIssueInstant must be a datetime such as 2026-11-20T20:25:00.000Z, or " +
			"milliseconds since 1970")
	}
	return s.checkNotInFuture("authnIssueInstant", issued)
}

func isBlank(text string) bool { return strings.TrimSpace(text) == "" }

// CreateSAMLResponse returns the signed SAML response, with an assertion, which tells a service
// provider that an account has logged in. It is for any enabled account of the tenant and any service
// provider of the tenant, registered with the identity provider or not: the caller has the key of an
// administrator, who decides. An account of another tenant is apierr.Reference, a disabled one
// apierr.UnusableStatus, and so is a disabled identity provider or registration.
func (s *Service) CreateSAMLResponse(ctx context.Context, at id.Ref, in ResponseRequest) ([]byte, error) {
	identity, err := s.SAMLIdentityProvider(ctx, at)
	if err != nil {
		return nil, err
	}
	if err := in.check(s); err != nil {
		return nil, err
	}
	ref, err := s.core.ParseReference(in.ServiceProvider, "serviceProvider", "registeredSamlServiceProviders")
	if err != nil {
		return nil, err
	}
	provider, err := s.store.SAMLServiceProvider(ctx, at.Tenant, ref.ID)
	if errors.Is(err, apierr.NotFound) {
		return nil, apierr.Reference.Because("serviceProvider: there is no registered service provider %q",
			in.ServiceProvider.Value.Href)
	}
	if err != nil {
		return nil, err
	}
	if _, err := s.enabledRegistration(ctx, identity, provider); err != nil && !errors.Is(err, errNotRegistered) {
		return nil, err
	}
	ref, err = s.core.ParseReference(in.Account, "account", "accounts")
	if err != nil {
		return nil, err
	}
	account, err := s.directories.Account(ctx, directoryapi.Ref{Tenant: at.Tenant, ID: ref.ID})
	switch {
	case errors.Is(err, apierr.NotFound):
		return nil, apierr.Reference.Because("account: there is no account %q", in.Account.Value.Href)
	case err != nil:
		return nil, err
	case account.Status != directoryapi.Enabled:
		return nil, apierr.UnusableStatus.Because("account: the account is %s", account.Status)
	}
	// Whoever the application reaches must be able to log in to it; whoever it does not reach need not.
	if _, err := s.accountForResponse(ctx, identity, account.ID); err != nil && !errors.Is(err, apierr.Reference) {
		return nil, err
	}
	now := s.now()
	return s.signSAMLResponse(ctx, identity, provider, account,
		saml.Response{InResponseTo: in.RequestID.Value, AuthenticatedAt: now, Now: now})
}

// signSAMLResponse returns the signed response, with an assertion, for an account. The response says
// which request it answers and when the user logged in; the parties and the account are filled in here.
func (s *Service) signSAMLResponse(ctx context.Context, identity IdentityProvider,
	provider store.SAMLServiceProvider, account directoryapi.Account, response saml.Response,
) (signed []byte, err error) {
	response.Issuer, response.Audience = EntityID(s.core.Alias(), identity.ApplicationID), provider.EntityID
	response.ConsumerURL = provider.AssertionConsumerServiceURL
	if response.NameID, response.NameIDFormat, err = s.nameID(ctx, identity, provider, account); err != nil {
		return nil, err
	}
	if response.Attributes, err = s.assertedAttributes(ctx, id.Ref{Tenant: identity.TenantID, ID: identity.ID},
		account); err != nil {
		return nil, err
	}
	pair, err := s.samlKeyPair(identity)
	if err != nil {
		return nil, err
	}
	return response.Sign(pair, identity.SignatureAlgorithm)
}

func (s *Service) samlKeyPair(identity IdentityProvider) (saml.KeyPair, error) {
	private, err := s.ring.Open(identity.PrivateKeySealed, samlKeyPurpose(identity.ID))
	if err != nil {
		return saml.KeyPair{}, err
	}
	return saml.ReadKeyPair(identity.Certificate, private)
}

// accountForResponse returns an account if it may log in to the application of an identity
// provider.
func (s *Service) accountForResponse(ctx context.Context, identity IdentityProvider,
	account id.ID) (directoryapi.Account, error) {
	unreachable := apierr.Reference.Because("account: the application reaches no account %q",
		s.base.To("accounts", account))
	found, err := s.directories.Account(ctx, directoryapi.Ref{Tenant: identity.TenantID, ID: account})
	if errors.Is(err, apierr.NotFound) {
		return found, unreachable
	}
	if err != nil {
		return found, err
	}
	_, err = s.core.CheckAccess(ctx, applicationapi.CheckAccess{
		Tenant: identity.TenantID, Application: identity.ApplicationID, Account: account,
	})
	switch refusal := apierr.From(err); {
	case errors.Is(err, apierr.TokenAccountUnreachable):
		err = unreachable
	case errors.Is(err, apierr.TokenAccountDisabled), errors.Is(err, apierr.TokenStoreDisabled),
		errors.Is(err, apierr.TokenApplicationDisabled):
		err = apierr.UnusableStatus.Because("account: %s", refusal.Reason)
	}
	return found, err
}

// nameID returns the NameID of an account for a service provider, and its format: the email, a
// persistent id that is different for each service provider, or a transient id that is
// different in each response.
func (s *Service) nameID(
	ctx context.Context, identity IdentityProvider, provider store.SAMLServiceProvider, a directoryapi.Account,
) (name, format string, err error) {
	switch provider.NameIDFormat {
	case store.TransientNameID:
		return "_" + secure.Token(32).Reveal(), saml.TransientNameID, nil
	case store.PersistentNameID:
		key, err := s.relayKey(ctx, identity.TenantID)
		if err != nil {
			return "", "", err
		}
		mac := hmac.New(sha256.New, []byte(secure.Derive(key, "saml persistent name id").Reveal()))
		mac.Write([]byte(identity.ID.String() + " " + provider.ID.String() + " " + a.ID.String()))
		return base64.RawURLEncoding.EncodeToString(mac.Sum(nil)), saml.PersistentNameID, nil
	}
	return a.Email, saml.EmailNameID, nil
}

// assertedAttributes returns the attributes of an assertion (attribute statement) that the rules
// of an identity provider make of an account. A rule without a name uses the names of its
// account attributes. An attribute without a value is left out.
func (s *Service) assertedAttributes(ctx context.Context, at id.Ref, a directoryapi.Account) ([]saml.Attribute, error) {
	rules, err := s.store.SAMLRules(ctx, at)
	if err != nil || len(rules.Items) == 0 {
		return nil, err
	}
	profile, err := s.directories.Profile(ctx,
		directoryapi.ProfileRequest{Ref: directoryapi.Ref{Tenant: at.Tenant, ID: a.ID},
			CustomData: true})
	if err != nil {
		return nil, err
	}
	var data any
	if len(profile.CustomData) > 0 {
		if err := json.Unmarshal(profile.CustomData, &data); err != nil {
			return nil, err
		}
	}
	var attributes []saml.Attribute
	add := func(rule mappingrule.Rule, name string, values []string) {
		if len(values) == 0 {
			return
		}
		attribute := saml.Attribute{Name: name, Values: values}
		if rule.NameFormat != nil {
			attribute.NameFormat = *rule.NameFormat
		}
		attributes = append(attributes, attribute)
	}
	for _, rule := range rules.Items {
		var all []string
		for _, source := range rule.AccountAttributes {
			values := attributeValues(a, data, source)
			if rule.Name == nil {
				add(rule, source, values)
			}
			all = append(all, values...)
		}
		if rule.Name != nil {
			add(rule, *rule.Name, all)
		}
	}
	return attributes, nil
}

// attributeValues returns the values of an account attribute, such as email or
// customData.color: one value for each member of a list, and none for a value that is not a
// text, a number or a boolean.
func attributeValues(a directoryapi.Account, data any, attribute string) []string {
	optional := func(text *string) []string {
		if text == nil {
			return nil
		}
		return []string{*text}
	}
	switch attribute {
	case "email":
		return []string{a.Email}
	case "username":
		return []string{a.Username}
	case "givenName":
		return optional(a.GivenName)
	case "middleName":
		return optional(a.MiddleName)
	case "surname":
		return optional(a.Surname)
	}
	for _, key := range strings.Split(attribute, ".")[1:] {
		members, _ := data.(map[string]any)
		data = members[key]
	}
	return textValues(data)
}

// textValues returns the texts of a value of customData.
func textValues(value any) (out []string) {
	switch v := value.(type) {
	case string:
		return []string{v}
	case []any:
		for _, member := range v {
			if _, isList := member.([]any); !isList {
				out = append(out, textValues(member)...)
			}
		}
	case float64, bool:
		encoded, err := json.Marshal(v)
		if err == nil {
			return []string{string(encoded)}
		}
	}
	return out
}
