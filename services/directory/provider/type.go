package provider

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/services/directory"
)

// providerType says which members the providers of a type have, which of them are required, and
// which scopes are always requested, or only where the provider names none (scopeIsReplaced).
type providerType struct {
	members         map[string]presence
	scope           []string
	scopeIsReplaced bool
}

// presence says whether providers of a type may or must have a member. Zero: they do not have it, and
// it is refused.
type presence int

const (
	optional presence = iota + 1
	required
)

// providerTypes are the types that have a name
// (docs/interface/directories.md#ldap-and-active-directory). Every other providerId is generic
// OAuth.
var providerTypes = map[string]providerType{
	directoryapi.Native: {},
	directory.LDAP:      {members: map[string]presence{"agent": required}},
	directory.AD:        {members: map[string]presence{"agent": required}},
	"google": {
		members: map[string]presence{
			"clientId": required, "clientSecret": required, "redirectUri": required, "scope": optional,
			"hd": optional, "display": optional, "accessType": optional, "userInfoMappingRules": optional,
			"acceptForeignTokens": optional,
		},
		scope: []string{"profile", "email"},
	},
	"facebook": {members: socialMembers, scope: []string{"public_profile", "email"}},
	"github":   {members: socialMembers, scope: []string{"user:email"}},
	// The former r_basicprofile and r_emailaddress are refused for every application that was
	// registered since August 2023; an older one names its scopes itself.
	"linkedin": {members: socialMembers, scope: []string{"openid", "profile", "email"}, scopeIsReplaced: true},
	"twitter":  {members: socialMembers},
	"saml": {members: map[string]presence{
		"ssoLoginUrl": required, "ssoLogoutUrl": required, "encodedX509SigningCert": required,
		"encodedX509SigningCertNext": optional,
		"requestSignatureAlgorithm":  optional, "forceAuthn": optional, "attributeStatementMappingRules": optional,
		"entityId": optional,
		"metadata": optional, "metadataUrl": optional, "clockSkew": optional, "trustsReusedEmails": optional,
	}},
}

// samlByMetadata is the type saml where metadata fill in the members that are left out.
var samlByMetadata = func() providerType {
	members := maps.Clone(providerTypes["saml"].members)
	for _, filled := range []string{"ssoLoginUrl", "ssoLogoutUrl", "encodedX509SigningCert"} {
		members[filled] = optional
	}
	return providerType{members: members}
}()

var socialMembers = map[string]presence{
	"clientId": required, "clientSecret": required, "redirectUri": optional, "scope": optional,
	"userInfoMappingRules": optional,
	"acceptForeignTokens":  optional,
}

// genericOAuth is the type of every other providerId
// (docs/interface/directories.md#generic-oauth-20).
var genericOAuth = providerType{members: map[string]presence{
	"clientId": required, "clientSecret": required, "authorizationEndpoint": required, "tokenEndpoint": required,
	"resourceEndpoint": required,
	"discoveryUrl":     optional, "idField": optional, "accessTokenType": optional, "scope": optional,
	"userInfoMappingRules":  optional,
	"introspectionEndpoint": optional, "acceptForeignTokens": optional,
}}

// openIDConnect is genericOAuth where a discovery document gives the endpoints that are left out.
var openIDConnect = func() providerType {
	members := maps.Clone(genericOAuth.members)
	for _, endpoint := range []string{"authorizationEndpoint", "tokenEndpoint", "resourceEndpoint"} {
		members[endpoint] = optional
	}
	return providerType{members: members}
}()

func typeOf(providerID string) providerType {
	if named, ok := providerTypes[providerID]; ok {
		return named
	}
	return genericOAuth
}

// readProviderType reads the providerId of a new provider, and the providerType, which only generic
// OAuth has.
func (s *Service) readProviderType(in NewProvider) (providerID, providerType string, err error) {
	sent, err := field.Required(in.ProviderID, "providerId", directory.MaxName)
	if errors.Is(err, apierr.Required) {
		return "", "", apierr.Required.Because(
			"providerId is required: %s, or a name of your own for a generic OAuth provider", s.providerIDs())
	}
	if err != nil {
		return "", "", err
	}
	providerID = s.canonicalProviderID(sent)
	if _, named := providerTypes[providerID]; named {
		if in.ProviderType.Given() && s.canonicalProviderID(in.ProviderType.Value) != providerID {
			return "", "", apierr.Invalid.Because(
				"providerType of the provider %q cannot be %q; a generic OAuth provider needs a providerId of its own",
				sent, in.ProviderType.Value)
		}
		return providerID, providerID, nil
	}
	providerType, err = field.Enum(in.ProviderType.NullIsAbsent(true), "providerType", "oauth2", "oauth2", "oauth")
	return providerID, providerType, err
}

// providerIDs lists the named types, for the text of an error.
func (s *Service) providerIDs() string {
	var names []string
	for name := range providerTypes {
		if name == directoryapi.Native {
			name = string(s.core.Alias())
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// canonicalProviderID returns the providerId as it is stored: the name of a type in lower case,
// and directoryapi.Native for the deployment's alias (docs/interface/conventions.md#the-alias).
func (s *Service) canonicalProviderID(providerID string) string {
	providerID = strings.TrimSpace(providerID)
	lower := strings.ToLower(providerID)
	if lower == string(s.core.Alias()) {
		return directoryapi.Native
	}
	if _, named := providerTypes[lower]; named {
		return lower
	}
	return providerID
}

// checkProviderUnchanged returns an error for a body that names another provider than the
// directory has.
func (s *Service) checkProviderUnchanged(current string, in NewProvider) error {
	if in.ProviderID.Present {
		sent, err := field.Required(in.ProviderID, "providerId", directory.MaxName)
		if err != nil {
			return err
		}
		if s.canonicalProviderID(sent) != current {
			return providerChangeError(current)
		}
	}
	_, named := providerTypes[current]
	if named && in.ProviderType.Given() && s.canonicalProviderID(in.ProviderType.Value) != current {
		return providerChangeError(current)
	}
	return nil
}

// providerChangeError is the error for changing the type of a provider.
func providerChangeError(current string) error {
	if current == directoryapi.Native {
		return apierr.CannotBecomeMirror.Because("the directory is a cloud directory and cannot become a mirror")
	}
	return apierr.ProviderFixed.Because("the provider of the directory is %q and cannot become another", current)
}
