// Package oauthapi is the contract of the OAuth service: API keys.
package oauthapi

import (
	"context"
	"time"

	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
)

// API is what peers ask of the OAuth service.
type API interface {
	// Authenticate checks an API key as a management credential: the key, its
	// account and the administrators directory must be enabled. It returns
	// apierr.Unauthorized.
	Authenticate(context.Context, Authenticate) (Key, error)

	// VerifySignature checks a request that was signed with an API key by the scheme
	// SAuthc1 (docs/interface/authentication.md#sauthc1). The key must be valid as
	// for Authenticate, the time at most 15 minutes ahead of now and 60 behind, and
	// the nonce new. It returns apierr.Unauthorized.
	VerifySignature(context.Context, VerifySignature) (Key, error)

	// ManagementKey gives a key that is good as for Authenticate as it was at
	// most a second ago, to a caller that cannot see a proof of its secret yet.
	// It returns apierr.Unauthorized.
	ManagementKey(context.Context, ManagementKey) (Key, error)

	// EnsureKey makes an API key with a given id and secret. A repeated call
	// gives what the first made; another secret or account for the same id is
	// apierr.Exists.
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

// Authenticate asks whether a key is good.
type Authenticate struct {
	ID     string        `json:"id"`
	Secret secure.Secret `json:"secret"`
}

// VerifySignature asks whether a signature is good. What was signed is made of the
// other members, so that what is checked and what was signed are the same.
type VerifySignature struct {
	ID        string `json:"id"`        // of the API key
	Timestamp string `json:"timestamp"` // 20240215T083000Z
	Nonce     string `json:"nonce"`
	Request   string `json:"request"`   // SHA-256 of the canonical request, in lower-case hex
	Signature string `json:"signature"` // in lower-case hex
}

// ManagementKey asks for a key by its id.
type ManagementKey struct {
	ID string `json:"id"`
}

// EnsureKey asks for a key.
type EnsureKey struct {
	Tenant  id.ID         `json:"tenant"`
	Account id.ID         `json:"account"`
	ID      string        `json:"id"`
	Secret  secure.Secret `json:"secret"`
}
