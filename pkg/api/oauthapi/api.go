// Package oauthapi is the contract of the OAuth service (services/oauth), which other services call
// by RPC: authentication by API keys, and tokens for the hosted login and the Client API.
package oauthapi

import (
	"context"
	"time"

	"github.com/doorward/doorward/pkg/cache"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
)

//go:generate go run ../internal/generate oauth Contract

// Contract has all methods of the OAuth service that other services call.
type Contract interface {
	API
	Hosted
	OpenID
}

// API has the methods about API keys; those for the hosted login and the Client API are in Hosted.
type API interface {
	// Authenticate verifies an API key and its secret as a management credential: the key must
	// be enabled, and its account an administrator of the tenant (an account of the built-in
	// application), as of at most 100 ms ago. It returns apierr.Unauthorized.
	Authenticate(context.Context, Authenticate) (Key, error)

	// VerifySignature verifies a request that was signed with an API key by the scheme SAuthc1
	// (docs/interface/authentication.md#sauthc1). The key must be valid as for Authenticate, the
	// time at most 15 minutes ahead of now and 60 behind, and the nonce new (replay protection).
	// It returns apierr.Unauthorized.
	VerifySignature(context.Context, VerifySignature) (Key, error)

	// ManagementKey returns an API key by its id, without a check of its secret, if it was valid
	// as for Authenticate. It returns apierr.Unauthorized.
	ManagementKey(context.Context, ManagementKey) (Key, error)

	// FindKey returns an API key of any tenant by its id alone, whatever its status, or apierr.NotFound.
	FindKey(context.Context, ManagementKey) (Key, error)

	// AccessChanges returns the API keys that were created, changed or deleted since a position
	// (cache.Answers).
	AccessChanges(context.Context, cache.Position) (cache.Page, error)

	// EnsureKey creates an API key with a given id and secret. It is idempotent: a key with the
	// same id, secret and account is returned, another secret or account is apierr.Exists. With
	// MustExist a missing key is not created, but apierr.NotFound.
	EnsureKey(context.Context, EnsureKey) (Key, error)
}

// Key is an API key, without its secret.
type Key struct {
	TenantID    id.ID     `json:"tenantId"`
	ID          string    `json:"id"` // the user name of Basic authentication
	AccountID   id.ID     `json:"accountId"`
	Status      string    `json:"status"`
	Name        *string   `json:"name"`
	Description *string   `json:"description"`
	CreatedAt   time.Time `json:"createdAt"`
	ModifiedAt  time.Time `json:"modifiedAt"`
	// DependsOn are the resources whose change may end that the key is a management credential. They are
	// reported by AccessChanges of this, the application and the directory service.
	DependsOn []id.ID `json:"dependsOn,omitempty" db:"-"`
}

// Authenticate is the request to verify an API key and its secret.
type Authenticate struct {
	ID     string        `json:"id"`
	Secret secure.Secret `json:"secret"`
}

// VerifySignature is the request to verify the signature of a request. The signed text is made of
// the other members.
type VerifySignature struct {
	ID        string `json:"id"`        // of the API key
	Timestamp string `json:"timestamp"` // 20240215T083000Z
	Nonce     string `json:"nonce"`
	Request   string `json:"request"`   // SHA-256 of the canonical request, in lower-case hex
	Signature string `json:"signature"` // in lower-case hex
}

// ManagementKey is the request for an API key by its id.
type ManagementKey struct {
	ID string `json:"id"`
}

// EnsureKey is the request to create an API key.
type EnsureKey struct {
	Tenant    id.ID         `json:"tenant"`
	Account   id.ID         `json:"account"`
	ID        string        `json:"id"`
	Secret    secure.Secret `json:"secret"`
	MustExist bool          `json:"mustExist,omitempty"` // the key was created before: do not create it again
}
