package directory

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
)

// The types of provider that have more than members of their own.
const (
	ldap = "ldap"
	ad   = "ad"
)

// providerType says which members the providers of a type have, which of them
// are required, and what is always in the scope.
type providerType struct {
	members map[string]need
	scope   []string
}

type need int

const (
	mayHave need = iota + 1
	mustHave
)

// providerTypes are the types that the interface names
// (docs/interface/directories.md#ldap-and-active-directory, 4.4 and 4.6). Their names cannot be the providerId of another.
var providerTypes = map[string]providerType{
	directoryapi.Native: {},
	ldap:                {members: map[string]need{"agent": mustHave}},
	ad:                  {members: map[string]need{"agent": mustHave}},
	"google": {
		members: map[string]need{
			"clientId": mustHave, "clientSecret": mustHave, "redirectUri": mustHave, "scope": mayHave,
			"hd": mayHave, "display": mayHave, "accessType": mayHave, "userInfoMappingRules": mayHave,
		},
		scope: []string{"profile", "email"},
	},
	"facebook": {members: socialMembers, scope: []string{"public_profile", "email"}},
	"github":   {members: socialMembers, scope: []string{"user:email"}},
	"linkedin": {members: socialMembers, scope: []string{"r_basicprofile", "r_emailaddress"}},
	"twitter":  {members: socialMembers},
	"saml": {members: map[string]need{
		"ssoLoginUrl": mustHave, "ssoLogoutUrl": mustHave, "encodedX509SigningCert": mustHave,
		"encodedX509SigningCertNext": mayHave,
		"requestSignatureAlgorithm":  mayHave, "forceAuthn": mayHave, "attributeStatementMappingRules": mayHave, "entityId": mayHave,
	}},
}

var socialMembers = map[string]need{
	"clientId": mustHave, "clientSecret": mustHave, "redirectUri": mayHave, "scope": mayHave, "userInfoMappingRules": mayHave,
}

// genericOAuth is the type of every other providerId (docs/interface/directories.md#generic-oauth-20).
var genericOAuth = providerType{members: map[string]need{
	"clientId": mustHave, "clientSecret": mustHave, "authorizationEndpoint": mustHave, "tokenEndpoint": mustHave, "resourceEndpoint": mustHave,
	"discoveryUrl": mayHave, "idField": mayHave, "accessTokenType": mayHave, "scope": mayHave, "userInfoMappingRules": mayHave,
}}

// openIDConnect is genericOAuth where a discovery document fills in the endpoints
// that are left out.
var openIDConnect = func() providerType {
	members := maps.Clone(genericOAuth.members)
	for _, endpoint := range []string{"authorizationEndpoint", "tokenEndpoint", "resourceEndpoint"} {
		members[endpoint] = mayHave
	}
	return providerType{members: members}
}()

func typeOf(providerID string) providerType {
	if named, ok := providerTypes[providerID]; ok {
		return named
	}
	return genericOAuth
}

// providerType reads what identifies the type of a new provider: its
// providerId, and the providerType, which only generic OAuth reads.
func (s *Service) providerType(in NewProvider) (providerID, providerType string, err error) {
	sent, err := field.Required(in.ProviderID, "providerId", maxName)
	if errors.Is(err, apierr.Required) {
		return "", "", apierr.Required.Because("providerId is required: %s, or a name of your own for a generic OAuth provider", s.providerIDs())
	}
	if err != nil {
		return "", "", err
	}
	providerID = s.neutral(sent)
	if _, named := providerTypes[providerID]; named {
		if in.ProviderType.Given() && s.neutral(in.ProviderType.Value) != providerID {
			return "", "", apierr.Invalid.Because(
				"providerType of the provider %q cannot be %q; a generic OAuth provider needs a providerId of its own", sent, in.ProviderType.Value)
		}
		return providerID, providerID, nil
	}
	providerType, err = field.Enum(in.ProviderType, "providerType", "oauth2", "oauth2", "oauth")
	return providerID, providerType, err
}

// providerIDs lists the types that the interface names, for a text.
func (s *Service) providerIDs() string {
	var names []string
	for name := range providerTypes {
		if name == directoryapi.Native {
			name = string(s.Alias())
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// neutral returns the name under which a providerId is kept: the types that the
// interface names are written in any letter case, and cloud directories also
// with the deployment's alias (docs/interface/conventions.md#the-alias).
func (s *Service) neutral(providerID string) string {
	providerID = strings.TrimSpace(providerID)
	lower := strings.ToLower(providerID)
	if lower == string(s.Alias()) {
		return directoryapi.Native
	}
	if _, named := providerTypes[lower]; named {
		return lower
	}
	return providerID
}

// sameProvider refuses a body that names another provider than the one of that
// providerId.
func (s *Service) sameProvider(own string, in NewProvider) error {
	if in.ProviderID.Present {
		sent, err := field.Required(in.ProviderID, "providerId", maxName)
		if err != nil {
			return err
		}
		if s.neutral(sent) != own {
			return otherProvider(own)
		}
	}
	_, named := providerTypes[own]
	if named && in.ProviderType.Given() && s.neutral(in.ProviderType.Value) != own {
		return otherProvider(own)
	}
	return nil
}

func otherProvider(own string) error {
	if own == directoryapi.Native {
		return apierr.CannotBecomeMirror.Because("the directory is a cloud directory and cannot become a mirror")
	}
	return apierr.ProviderFixed.Because("the provider of the directory is %q and cannot become another", own)
}
