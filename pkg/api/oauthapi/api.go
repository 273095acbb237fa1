// Package oauthapi is the contract of the OAuth service: API keys.
package oauthapi

import (
	"context"
	"time"

	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
)

// API is the contract of the OAuth service.
type API interface {
	// Authenticate checks an API key as a management credential: the key must be
	// enabled, and its account an administrator that may log in to the tenant's
	// built-in application. It returns apierr.Unauthorized.
	Authenticate(context.Context, Authenticate) (Key, error)

	// VerifySignature checks a request that was signed with an API key by the scheme
	// SAuthc1 (docs/interface/authentication.md#sauthc1). The key must be valid as
	// for Authenticate, the time at most 15 minutes ahead of now and 60 behind, and
	// the nonce new. It returns apierr.Unauthorized.
	VerifySignature(context.Context, VerifySignature) (Key, error)

	// ManagementKey returns a key that was valid as for Authenticate at most 100 ms
	// ago, without a proof of its secret. It returns apierr.Unauthorized.
	ManagementKey(context.Context, ManagementKey) (Key, error)

	// EnsureKey creates an API key with a given id and secret. It is idempotent:
	// another secret or account for the same id is apierr.Exists. One that was made
	// before is not made again: apierr.NotFound where it was deleted since.
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
}

// Authenticate is the request to check a key and its secret.
type Authenticate struct {
	ID     string        `json:"id"`
	Secret secure.Secret `json:"secret"`
}

// VerifySignature is the request to check a signature. The text that was signed
// consists of the other members, so that what is checked is what was signed.
type VerifySignature struct {
	ID        string `json:"id"`        // of the API key
	Timestamp string `json:"timestamp"` // 20240215T083000Z
	Nonce     string `json:"nonce"`
	Request   string `json:"request"`   // SHA-256 of the canonical request, in lower-case hex
	Signature string `json:"signature"` // in lower-case hex
}

// ManagementKey is the request for a key by its id.
type ManagementKey struct {
	ID string `json:"id"`
}

// EnsureKey is the request to create a key.
type EnsureKey struct {
	Tenant  id.ID         `json:"tenant"`
	Account id.ID         `json:"account"`
	ID      string        `json:"id"`
	Secret  secure.Secret `json:"secret"`
	WasMade bool          `json:"wasMade,omitempty"` // before, so that it is not created
}
