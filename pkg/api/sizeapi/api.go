// Package sizeapi is the contract by which each service returns how much it stores of a tenant (package tenantsize).
package sizeapi

import (
	"context"

	"github.com/doorward/doorward/pkg/id"
)

//go:generate go run ../internal/generate size API

// API is implemented by each service.
type API interface {
	// Sizes returns how much the service stores of tenants, as of at most an hour ago.
	Sizes(context.Context, Tenants) (Sizes, error)
}

// Tenants are the tenants that are asked for.
type Tenants struct {
	IDs []id.ID `json:"ids"`
}

// Sizes are the sizes of tenants, in the order in which they were asked for.
type Sizes struct {
	Sizes []Size `json:"sizes"`
}

// Size is how much a service stores of a tenant.
type Size struct {
	Bytes int64            `json:"bytes"` // about: its part of the rows of each table is its part of the table
	Rows  map[string]int64 `json:"rows"`  // by table; none that is empty
}
