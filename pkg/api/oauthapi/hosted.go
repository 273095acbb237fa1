package oauthapi

import (
	"context"
	"encoding/json"
	"time"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
)

// Hosted is what the hosted login and the Client API ask of the OAuth service:
// secrets of API keys never leave it, so it verifies and signs for them.
type Hosted interface {
	// VerifyJWT verifies a JWT that an enabled key of an administrator signed with
	// HS256. The key is named by the header kid or else by the claim iss, of any
	// tenant. It returns apierr.TokenSignature; times and claims are the caller's
	// to check.
	VerifyJWT(context.Context, VerifyJWT) (VerifiedJWT, error)

	// SignAssertion signs an assertion with the secret of a key of the tenant: the
	// named one, or the one that signs for the application (its web config's, else
	// the oldest enabled key of an administrator). The header gets typ, alg, kid
	// and, unless the claims have err, stt; the claims get aud where they have an empty one. It returns
	// apierr.NotFound where no such key is enabled.
	SignAssertion(context.Context, SignAssertion) (SignedAssertion, error)

	// ClientConfig returns the web config of an application: what of its Client
	// API is on. The caller has read the application; of one that does not exist, and
	// of the console, it is the default.
	ClientConfig(context.Context, id.Ref) (ClientConfig, error)

	// ClientToken answers the token endpoint of the Client API. Refusals carry the
	// member error of RFC 6749, section 5.2; a grant type that does not exist has
	// unsupported_grant_type. Client credentials are the form fields client_id and
	// client_secret.
	ClientToken(context.Context, ClientForm) (ClientTokens, error)

	// ClientRevoke answers the revocation endpoint of the Client API (RFC 7009).
	ClientRevoke(context.Context, ClientForm) (Revoked, error)

	// ValidateToken checks an access token of an application. It returns the
	// errors of docs/interface/errors.md#failed-validation.
	ValidateToken(context.Context, ValidateToken) (ValidToken, error)

	// KeysOf returns the API keys of an account, at most 100, without
	// secrets.
	KeysOf(context.Context, id.Ref) (Keys, error)
}

// VerifyJWT asks whether a JWT is genuine.
type VerifyJWT struct {
	Token secure.Secret `json:"token"`
}

// VerifiedJWT is a JWT with a good signature.
type VerifiedJWT struct {
	Tenant id.ID           `json:"tenant"`
	KeyID  string          `json:"keyId"`
	Header json.RawMessage `json:"header"`
	Claims json.RawMessage `json:"claims"`
}

// SignAssertion asks for a signature.
type SignAssertion struct {
	Tenant      id.ID           `json:"tenant"`
	Application id.ID           `json:"application,omitzero"`
	KeyID       string          `json:"keyId,omitempty"` // empty: the key that signs for Application
	Claims      json.RawMessage `json:"claims"`
}

// SignedAssertion is a signed JWT.
type SignedAssertion struct {
	Token secure.Secret `json:"token"`
	KeyID string        `json:"keyId"`
}

// ClientConfig is what of a Client API is on; docs/interface/client-api.md#web-config.
type ClientConfig struct {
	Enabled        bool     `json:"enabled"`
	OAuth2         bool     `json:"oauth2"`
	Register       bool     `json:"register"`
	Login          bool     `json:"login"`
	VerifyEmail    *bool    `json:"verifyEmail"`    // nil: as the default directory sends the mail
	ForgotPassword *bool    `json:"forgotPassword"` // nil: as the default directory sends the mail
	ChangePassword *bool    `json:"changePassword"` // nil: as the default directory sends the mail
	Me             bool     `json:"me"`
	MeExpand       []string `json:"meExpand"`
	MFARequired    bool     `json:"mfaRequired"`
	FactorTypes    []string `json:"factorTypes"`
}

// ClientForm is the form of a request to a token endpoint of the Client API.
type ClientForm struct {
	Tenant      id.ID                    `json:"tenant"`
	Application id.ID                    `json:"application"`
	Form        map[string]secure.Secret `json:"form"`
}

// ClientTokens are the tokens of a grant.
type ClientTokens struct {
	Access           secure.Secret `json:"access"`
	Refresh          secure.Secret `json:"refresh,omitempty"` // empty: none is issued
	AccessExpiresAt  time.Time     `json:"accessExpiresAt"`
	RefreshExpiresAt time.Time     `json:"refreshExpiresAt,omitzero"`
	ExpiresIn        int           `json:"expiresIn"` // seconds, of the access token
}

// Revoked answers a revocation.
type Revoked struct{}

// ValidateToken asks whether an access token is good.
type ValidateToken struct {
	Tenant      id.ID         `json:"tenant"`
	Application id.ID         `json:"application"`
	Token       secure.Secret `json:"token"`
}

// ValidToken is an access token that is good.
type ValidToken struct {
	Account      directoryapi.Account `json:"account"`
	Organization id.ID                `json:"organization,omitzero"`
	ExpiresAt    time.Time            `json:"expiresAt"`
}

// Keys are several API keys.
type Keys struct {
	Items []Key `json:"items"`
}
