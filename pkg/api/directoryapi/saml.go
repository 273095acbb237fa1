package directoryapi

import (
	"context"

	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
)

// SAML is what the hosted login asks of the directory service for logins at the
// identity provider of a SAML directory (docs/interface/directories.md#saml).
type SAML interface {
	// SAMLTenant returns the tenant of a SAML directory, or apierr.NotFound.
	SAMLTenant(context.Context, SAMLDirectory) (SAMLTenant, error)

	// BeginSAMLLogin returns the URL to which a browser goes to log in. It returns apierr.NotSAML for
	// a directory that is no SAML directory or does not exist, and DirectoryDisabled.
	BeginSAMLLogin(context.Context, BeginSAMLLogin) (SAMLRedirect, error)

	// FinishSAMLLogin verifies a response of the identity provider, which can be used once, and
	// returns the account of the user, which it creates at the first login. It returns apierr.NotSAML,
	// SAMLMalformed, SAMLSignature, SAMLFailed, ProviderIncomplete for a user without an email, and
	// the errors of ProviderAccount.
	FinishSAMLLogin(context.Context, FinishSAMLLogin) (SAMLLogin, error)

	// SAMLLogout returns the URL to which a browser goes to log out, or apierr.NotSAML.
	SAMLLogout(context.Context, SAMLLogout) (SAMLRedirect, error)
}

// SAMLDirectory is a directory of any tenant.
type SAMLDirectory struct {
	Directory id.ID `json:"directory"`
}

// SAMLTenant is the tenant of a directory.
type SAMLTenant struct {
	Tenant id.ID `json:"tenant"`
}

// BeginSAMLLogin is the request for an authentication request.
type BeginSAMLLogin struct {
	Tenant     id.ID         `json:"tenant"`
	Directory  id.ID         `json:"directory"`
	RequestID  string        `json:"requestId"` // of the AuthnRequest; the response names it
	RelayState secure.Secret `json:"relayState"`
}

// SAMLRedirect is the URL to which a browser is redirected.
type SAMLRedirect struct {
	Location string `json:"location"`
}

// FinishSAMLLogin is a response of an identity provider.
type FinishSAMLLogin struct {
	Tenant      id.ID `json:"tenant"`
	Directory   id.ID `json:"directory"`
	Application id.ID `json:"application"` // through which the user logs in
	// empty for a login that the identity provider started (IdP-initiated)
	RequestID string        `json:"requestId,omitempty"`
	Response  secure.Secret `json:"response"` // SAMLResponse
}

// SAMLLogin is a login at an identity provider.
type SAMLLogin struct {
	Account    Account     `json:"account"`
	IsNew      bool        `json:"isNew"`
	ResponseID string      `json:"responseId"`
	Session    SAMLSession `json:"session"`
}

// SAMLSession is the session of a user at the identity provider of a directory.
type SAMLSession struct {
	Directory    id.ID  `json:"directory"`
	NameID       string `json:"nameId"`
	NameIDFormat string `json:"nameIdFormat,omitempty"`
	Index        string `json:"index,omitempty"`
}

// SAMLLogout is the request for a logout request.
type SAMLLogout struct {
	Tenant     id.ID         `json:"tenant"`
	Session    SAMLSession   `json:"session"`
	RelayState secure.Secret `json:"relayState"`
}
