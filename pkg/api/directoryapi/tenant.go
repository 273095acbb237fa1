package directoryapi

import (
	"time"

	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
)

// Tenant is one customer, whose data no other tenant can see.
type Tenant struct {
	ID         id.ID     `json:"id" db:"tenant_id"`
	Key        string    `json:"key"`
	Name       string    `json:"name"`
	CreatedAt  time.Time `json:"createdAt"`
	ModifiedAt time.Time `json:"modifiedAt"`

	// What the operators of the deployment have decided about it.
	Status       string     `json:"status"`      // Enabled, Suspended, Deleting or Deleted
	StatusReason *string    `json:"reason"`      // nil for an enabled one
	SuspendedAt  *time.Time `json:"suspendedAt"` // likewise
	DeleteAfter  *time.Time `json:"deleteAfter"` // of one that is Deleting
}

// Times returns the times of the collections below the tenant.
func (t Tenant) Times() (createdAt, modifiedAt time.Time) { return t.CreatedAt, t.ModifiedAt }

// SignUp is the request to create a tenant.
type SignUp struct {
	Tenant        id.ID         `json:"tenant"`
	Directory     id.ID         `json:"directory"`      // id of the administrators directory
	Owner         id.ID         `json:"owner"`          // id of the owner's account
	Key           string        `json:"key"`            // of the tenant: two words
	Name          string        `json:"name,omitempty"` // of the tenant; empty: its key
	DirectoryName string        `json:"directoryName"`
	Email         string        `json:"email"`
	Password      secure.Secret `json:"password"` // empty: the owner cannot log in before a password reset
	// Pending takes the owner's email, names and password from the pending sign-up of these ids,
	// whose mail has verified the email.
	Pending bool `json:"pending,omitempty"`
}

// SignedUp is a tenant with its administrators directory and its owner's account.
type SignedUp struct {
	Tenant    Tenant    `json:"tenant"`
	Directory Directory `json:"directory"`
	Owner     Account   `json:"owner"`
}
