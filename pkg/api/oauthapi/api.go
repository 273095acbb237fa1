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

// EnsureKey asks for a key.
type EnsureKey struct {
	Tenant  id.ID         `json:"tenant"`
	Account id.ID         `json:"account"`
	ID      string        `json:"id"`
	Secret  secure.Secret `json:"secret"`
}
