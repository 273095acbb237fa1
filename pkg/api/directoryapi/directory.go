package directoryapi

import (
	"time"

	"github.com/doorward/doorward/pkg/id"
)

// The kinds of account store, as they stand in an href.
const (
	Directories = "directories"
	Groups      = "groups"
)

// Native is the providerId of cloud directories. A directory with another providerId is a mirror:
// a read-only copy of a directory elsewhere.
const Native = "native"

// Directory is a container of accounts.
type Directory struct {
	TenantID    id.ID     `json:"tenantId"`
	ID          id.ID     `json:"id"`
	Name        string    `json:"name"`
	Description *string   `json:"description"`
	Status      string    `json:"status"`  // Enabled or Disabled
	Builtin     bool      `json:"builtin"` // the administrators directory, which cannot be deleted
	ProviderID  string    `json:"providerId"`
	SchemaID    id.ID     `json:"schemaId"`
	CreatedAt   time.Time `json:"createdAt"`
	ModifiedAt  time.Time `json:"modifiedAt"`
}

// Times returns the times of the collections below the directory.
func (d Directory) Times() (createdAt, modifiedAt time.Time) { return d.CreatedAt, d.ModifiedAt }

// Mirror reports whether the directory is a mirror, a read-only copy of a directory elsewhere.
func (d Directory) Mirror() bool { return d.ProviderID != Native }

// Store is an account store, in which logins are looked up: a directory, or a group, which
// contains its members.
type Store struct {
	Kind string `json:"kind"` // Directories or Groups
	ID   id.ID  `json:"id"`
}

// CreateDirectory is the request to create a directory.
type CreateDirectory struct {
	Tenant id.ID  `json:"tenant"`
	ID     id.ID  `json:"id"`
	Name   string `json:"name"`
}

// NamedStore is an account store with its name.
type NamedStore struct {
	Store
	Name        string `json:"name"`
	Status      string `json:"status"`      // Enabled or Disabled
	DirectoryID id.ID  `json:"directoryId"` // the directory itself, or that of the group
	ProviderID  string `json:"providerId"`  // of the directory
	Directory   string `json:"directory"`   // name of the directory
}

// StoresOf are the account stores that contain an account.
type StoresOf struct {
	Stores []Store `json:"stores"`
}
