package oauthapi

import (
	"context"
	"encoding/json"
	"time"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
)

// Hosted has the methods for the hosted login and the Client API (services/idsite). The secrets of
// API keys never leave the OAuth service, so that it verifies and signs JWTs for them.
type Hosted interface {
	// VerifyJWT verifies a JWT that was signed with HS256 under an enabled API key of an
	// administrator, of any tenant. The key is named by the header kid or else by the claim iss.
	// It returns apierr.TokenSignature. The caller must check times and claims.
	VerifyJWT(context.Context, VerifyJWT) (VerifiedJWT, error)

	// SignAssertion signs an assertion with the secret of an API key of the tenant: the key of
	// KeyID, or the signing key of the application (that of its web config, else the oldest
	// enabled key of an administrator). The header gets typ, alg, kid and, unless the claims
	// have err, stt. An empty claim aud is replaced by the id of the key. It returns
	// apierr.NotFound where no such key is enabled.
	SignAssertion(context.Context, SignAssertion) (SignedAssertion, error)

	// ClientConfig returns the web config of an application: which endpoints of its Client API
	// are enabled. It does not check that the application exists; for the console, and an
	// application that does not exist, it returns the default.
	ClientConfig(context.Context, id.Ref) (ClientConfig, error)

	// ClientToken is the token endpoint of the Client API. Refusals have the member error of
	// RFC 6749, section 5.2; that of an unknown grant type is unsupported_grant_type. Client
	// credentials are the form fields client_id and client_secret.
	ClientToken(context.Context, ClientForm) (ClientTokens, error)

	// ClientRevoke is the revocation endpoint of the Client API (RFC 7009).
	ClientRevoke(context.Context, ClientForm) (Revoked, error)

	// ValidateToken validates an access token of an application, and that its account may still
	// act. It returns the errors of docs/interface/errors.md#failed-validation.
	ValidateToken(context.Context, ValidateToken) (ValidToken, error)

	// KeysOf returns at most 100 API keys of an account, without their secrets.
	KeysOf(context.Context, id.Ref) (Keys, error)
}

// VerifyJWT is the request to verify a JWT.
type VerifyJWT struct {
	Token secure.Secret `json:"token"`
}

// VerifiedJWT is a JWT whose signature is valid.
type VerifiedJWT struct {
	Tenant id.ID           `json:"tenant"`
	KeyID  string          `json:"keyId"`
	Header json.RawMessage `json:"header"`
	Claims json.RawMessage `json:"claims"`
}

// SignAssertion is the request to sign an assertion.
type SignAssertion struct {
	Tenant      id.ID           `json:"tenant"`
	Application id.ID           `json:"application,omitzero"`
	KeyID       string          `json:"keyId,omitempty"` // empty: the signing key of Application
	Claims      json.RawMessage `json:"claims"`
}

// SignedAssertion is a signed JWT.
type SignedAssertion struct {
	Token secure.Secret `json:"token"`
	KeyID string        `json:"keyId"`
}

// ClientConfig says which endpoints of a Client API are enabled
// (docs/interface/client-api.md#web-config).
type ClientConfig struct {
	Enabled        bool     `json:"enabled"`
	OAuth2         bool     `json:"oauth2"`
	Register       bool     `json:"register"`
	Login          bool     `json:"login"`
	VerifyEmail    *bool    `json:"verifyEmail"`    // nil: enabled if the default directory sends the mail
	ForgotPassword *bool    `json:"forgotPassword"` // nil: enabled if the default directory sends the mail
	ChangePassword *bool    `json:"changePassword"` // nil: enabled if the default directory sends the mail
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

// ClientTokens are the tokens that a grant has issued.
type ClientTokens struct {
	Access           secure.Secret `json:"access"`
	Refresh          secure.Secret `json:"refresh,omitempty"` // empty: no refresh token was issued
	AccessExpiresAt  time.Time     `json:"accessExpiresAt"`
	RefreshExpiresAt time.Time     `json:"refreshExpiresAt,omitzero"`
	ExpiresIn        int           `json:"expiresIn"` // seconds, of the access token
}

// Revoked answers a revocation.
type Revoked struct{}

// ValidateToken is the request to validate an access token.
type ValidateToken struct {
	Tenant      id.ID `json:"tenant"`
	Application id.ID `json:"application"`
	PresentedToken
}

// PresentedToken is an access token in a request (RFC 6750, section 2.1; RFC 9449, section 7.1).
type PresentedToken struct {
	Token   secure.Secret `json:"token"`
	Scheme  string        `json:"scheme,omitempty"` // of the header Authorization, in lower case
	Method  string        `json:"method,omitempty"`
	Address string        `json:"address,omitempty"` // of the request, without its query
	Proofs  []string      `json:"proofs,omitempty"`  // headers DPoP
}

// ValidToken is a valid access token.
type ValidToken struct {
	Account      directoryapi.Account `json:"account"`
	Organization id.ID                `json:"organization,omitzero"`
	ExpiresAt    time.Time            `json:"expiresAt"`
	SecondFactor bool                 `json:"secondFactor,omitempty"` // its login has passed one (MFA)
}

// Keys is a list of API keys.
type Keys struct {
	Items []Key `json:"items"`
}
