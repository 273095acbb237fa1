// Package idsiteapi is the contract of the idsite service: what the gateway calls beside forwarding
// requests.
package idsiteapi

import (
	"context"

	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
)

//go:generate go run ../internal/generate idsite API

// API is what peers call of the idsite service.
type API interface {
	// Certificate returns the TLS certificate of the custom domain of a tenant, for that
	// domain or for a subdomain one label below it. It returns apierr.NotFound where no
	// tenant has the domain, and where its certificate is not valid now or not for that name.
	Certificate(context.Context, Domain) (Certificate, error)

	// CreateTenant creates a tenant with its owner and the owner's API key, for an operator. It is idempotent. It
	// returns apierr.Exists for a key of a tenant that is taken, or was once.
	CreateTenant(context.Context, CreateTenant) (Tenant, error)

	// DomainTenant returns the tenant whose hosted pages have a domain, or one a label above it. It returns
	// apierr.NotFound where no tenant has it.
	DomainTenant(context.Context, Domain) (Tenant, error)
}

// CreateTenant is the request to create a tenant.
type CreateTenant struct {
	ID         id.ID         `json:"id"`
	Key        string        `json:"key"`  // empty: two words that are free
	Name       string        `json:"name"` // empty: the key
	OwnerEmail string        `json:"ownerEmail"`
	KeyID      string        `json:"keyId"`
	KeySecret  secure.Secret `json:"keySecret"`
}

// Tenant is the tenant of a domain, or one that was created.
type Tenant struct {
	ID id.ID `json:"id"`
}

// Domain names a host.
type Domain struct {
	Name string `json:"name"`
}

// Certificate is a certificate chain in PEM with its private key. The private key is sealed with a
// key that is derived from the deployment's internal secret.
type Certificate struct {
	Chain     string `json:"chain"`
	KeySealed []byte `json:"keySealed"`
}

// KeyPurpose is the purpose for which the private key of a domain is sealed.
func KeyPurpose(domain string) string { return "idsiteapi.certificate/" + domain }
