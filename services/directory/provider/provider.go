package provider

import (
	"context"
	"errors"
	"slices"
	"strings"
	"unicode"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/mappingrule"
	"github.com/doorward/doorward/pkg/saml"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/directory"
	"github.com/doorward/doorward/services/directory/agentconfig"
	"github.com/doorward/doorward/services/directory/store"
)

// NewProvider is the body that creates or changes the provider of a directory. It has the members
// of all types; providerTypes (type.go) says which type has which.
type NewProvider struct {
	Href         field.Text `json:"href"`
	ProviderID   field.Text `json:"providerId"`
	ProviderType field.Text `json:"providerType"`
	ClientID     field.Text `json:"clientId"`
	ClientSecret field.Text `json:"clientSecret"`
	Scope        field.List `json:"scope"`
	Scopes       field.List `json:"scopes"` // another name of scope
	RedirectURI  field.Text `json:"redirectUri"`
	// another name of redirectUri
	RedirectURL                    field.Text                         `json:"redirectURL"`
	HD                             field.Text                         `json:"hd"`
	Display                        field.Text                         `json:"display"`
	AccessType                     field.Text                         `json:"accessType"`
	AuthorizationEndpoint          field.Text                         `json:"authorizationEndpoint"`
	TokenEndpoint                  field.Text                         `json:"tokenEndpoint"`
	ResourceEndpoint               field.Text                         `json:"resourceEndpoint"`
	IntrospectionEndpoint          field.Text                         `json:"introspectionEndpoint"`
	AcceptForeignTokens            field.Bool                         `json:"acceptForeignTokens"`
	DiscoveryURL                   field.Text                         `json:"discoveryUrl"`
	IDField                        field.Text                         `json:"idField"`
	AccessTokenType                field.Text                         `json:"accessTokenType"`
	SSOLoginURL                    field.Text                         `json:"ssoLoginUrl"`
	SSOLogoutURL                   field.Text                         `json:"ssoLogoutUrl"`
	EncodedX509SigningCert         field.Text                         `json:"encodedX509SigningCert"`
	EncodedX509SigningCertNext     field.Text                         `json:"encodedX509SigningCertNext"`
	RequestSignatureAlgorithm      field.Text                         `json:"requestSignatureAlgorithm"`
	ForceAuthn                     field.Bool                         `json:"forceAuthn"`
	EntityID                       field.Text                         `json:"entityId"`
	Metadata                       field.Text                         `json:"metadata"`
	MetadataURL                    field.Text                         `json:"metadataUrl"`
	ClockSkew                      field.Int                          `json:"clockSkew"`
	TrustsReusedEmails             field.Bool                         `json:"trustsReusedEmails"`
	Agent                          field.Nullable[agentconfig.Agent]  `json:"agent"`
	UserInfoMappingRules           field.Nullable[mappingrule.Change] `json:"userInfoMappingRules"`
	AttributeStatementMappingRules field.Nullable[mappingrule.Change] `json:"attributeStatementMappingRules"`

	read *saml.IdentityProvider // what the metadata of the body say (samlmetadata.go); nil: it has none
}

// UnmarshalJSON reads a provider inside of a directory.
func (in *NewProvider) UnmarshalJSON(data []byte) error {
	type members NewProvider // without this method
	return field.Nested(data, (*members)(in), struct {
		field.Head
		ServiceProviderMetadata any `json:"serviceProviderMetadata"`
		CertificateStatus       any `json:"certificateStatus"`
		MetadataCertificates    any `json:"metadataCertificates"`
	}{})
}

// applyProvider writes the members of a body into a provider of its type and validates them. A
// member that the type does not have is apierr.UnusedProperty unless it is null.
func (s *Service) applyProvider(p *store.Provider, in NewProvider, isNew bool) error {
	var errs field.Errors
	providerType := typeOf(p.ProviderID)
	isOpenID := in.DiscoveryURL.Given() || !in.DiscoveryURL.Present && p.Settings.DiscoveryURL != nil
	if isOpenID && providerType.members["discoveryUrl"] != 0 {
		providerType = openIDConnect
		if isNew && !in.IDField.Given() {
			in.IDField = field.Some("sub") // OpenID Connect Core, section 5.1
		}
	}
	if p.ProviderID == "saml" {
		if err := applyMetadata(p, &in, s.now()); err != nil {
			return err
		}
		if p.Settings.Metadata != nil || p.Settings.MetadataURL != nil || in.read != nil {
			providerType = samlByMetadata
		}
	}
	var secret *string
	for _, t := range in.textMembers(&p.Settings, &secret) {
		switch need := providerType.members[t.name]; {
		case need == 0 && t.in.Given():
			return directory.UnusedMember(t.name)
		case need != 0 && (t.in.Present || isNew):
			errs.Add(t.read(need))
		}
	}
	if secret != nil {
		p.ClientSecret = secure.Secret(*secret)
		p.ClientSecretSealed = s.ring.Seal(p.ClientSecret, clientSecretPurpose(p.DirectoryID))
	}

	scopes := in.Scope
	if !scopes.Present {
		scopes = in.Scopes
	}
	for _, other := range []struct {
		name  string
		given bool
	}{
		{"scope", scopes.Given()}, {"forceAuthn", in.ForceAuthn.Given()},
		{"acceptForeignTokens", in.AcceptForeignTokens.Given()}, {"agent", in.Agent.Given()},
		{"clockSkew", in.ClockSkew.Given()}, {"trustsReusedEmails", in.TrustsReusedEmails.Given()},
		{"userInfoMappingRules", in.UserInfoMappingRules.Given()},
		{"attributeStatementMappingRules", in.AttributeStatementMappingRules.Given()},
	} {
		if other.given && providerType.members[other.name] == 0 {
			return directory.UnusedMember(other.name)
		}
	}
	if providerType.members["forceAuthn"] != 0 && (in.ForceAuthn.Present || isNew) {
		force := in.ForceAuthn.Or(false)
		p.Settings.ForceAuthn = &force
	}
	if providerType.members["acceptForeignTokens"] != 0 && (in.AcceptForeignTokens.Present || isNew) {
		accept := in.AcceptForeignTokens.Or(false)
		p.Settings.AcceptForeignTokens = &accept
	}
	if p.ProviderID == "saml" {
		errs.Add(applySAMLSettings(&p.Settings, in, isNew))
	}
	if providerType.members["scope"] != 0 && (scopes.Present || isNew) {
		errs.Add(setScope(p, providerType, scopes.Or(nil)))
	}
	refusal := errs.First()
	if _, named := providerTypes[p.ProviderID]; !named && isNew && errors.Is(refusal, apierr.Required) {
		return apierr.Required.Because("%s; %q is taken for a generic OAuth provider, as it is none of %s",
			apierr.From(refusal).Reason,
			p.ProviderID, s.providerIDs())
	}
	return refusal
}

// setScope sets the scopes of a provider: those of the type, without which an account has no email
// (docs/interface/directories.md#social), and those of the body, which for some types are in their
// place.
func setScope(p *store.Provider, of providerType, more []string) error {
	if len(more) > maxScopes {
		return apierr.TooLong.Because("scope has %d entries; at most %d are allowed", len(more), maxScopes)
	}
	p.Settings.Scope = []string{}
	if len(more) == 0 || !of.scopeIsReplaced {
		p.Settings.Scope = append(p.Settings.Scope, of.scope...)
	}
	for _, entry := range more {
		entry, err := field.Verbatim(field.Some(entry), "an entry of scope", directory.MaxName)
		if err != nil {
			return err
		}
		if strings.ContainsFunc(entry, unicode.IsControl) {
			return apierr.Format.Because("an entry of scope has a control character")
		}
		if !slices.Contains(p.Settings.Scope, entry) {
			p.Settings.Scope = append(p.Settings.Scope, entry)
		}
	}
	return nil
}

func clientSecretPurpose(directory id.ID) string {
	return "directory.provider/" + directory.String()
}

// Provider returns the provider of a directory, or apierr.NotFound.
func (s *Service) Provider(ctx context.Context, directory id.Ref) (store.Provider, error) {
	p, err := s.store.Provider(ctx, directory.Tenant, directory.ID)
	if err != nil {
		return p, err
	}
	return s.withShownState(p)
}

// withShownState fills in what the provider's representation shows and is not stored as it is shown: the
// client secret, and the state of the certificates.
func (s *Service) withShownState(p store.Provider) (store.Provider, error) {
	p.CertificateStatus = saml.CertificateStatus(s.now(), p.Settings.SigningCertificates()...)
	if p.ClientSecretSealed == nil {
		return p, nil
	}
	var err error
	p.ClientSecret, err = s.ring.Open(p.ClientSecretSealed, clientSecretPurpose(p.DirectoryID))
	return p, err
}

// UpdateProvider changes what the body names. The type of a provider cannot be changed:
// apierr.CannotBecomeMirror and apierr.ProviderFixed. The provider of a cloud directory has
// nothing that can be changed.
func (s *Service) UpdateProvider(ctx context.Context, directory id.Ref, in NewProvider) (store.Provider, error) {
	var p store.Provider
	in, err := s.readChangedMetadata(ctx, directory, in)
	if err != nil {
		return p, err
	}
	err = s.store.Tx(ctx, func(tx *store.Tx) (err error) {
		if p, err = tx.LockProvider(ctx, directory.Tenant, directory.ID); err != nil {
			return err
		}
		if err := s.checkProviderUnchanged(p.ProviderID, in); err != nil || p.ProviderID == directoryapi.Native {
			return err
		}
		if _, named := providerTypes[p.ProviderID]; !named {
			p.ProviderType, err = field.Enum(in.ProviderType, "providerType", p.ProviderType, "oauth2", "oauth")
		}
		if err := field.First(err, s.applyProvider(&p, in, false), s.replaceRules(ctx, tx, p, in)); err != nil {
			return err
		}
		p.ModifiedAt = s.now()
		return tx.UpdateProvider(ctx, p)
	})
	if err != nil {
		return p, err
	}
	return s.withShownState(p)
}

// replaceRules replaces the mapping rules of a provider by those of a body, if the body has any.
func (s *Service) replaceRules(ctx context.Context, tx *store.Tx, p store.Provider, in NewProvider) error {
	change := in.UserInfoMappingRules.Or(in.AttributeStatementMappingRules.Or(mappingrule.Change{}))
	if p.MappingRulesID.IsZero() || !change.Items.Present {
		return nil
	}
	_, err := s.updateRules(ctx, tx, p.MappingRulesKind, id.Ref{Tenant: p.TenantID, ID: p.MappingRulesID}, change)
	return err
}
