package directoryapi

import (
	"strings"
	"time"

	"github.com/doorward/doorward/pkg/customdata"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/list"
	"github.com/doorward/doorward/pkg/secure"
)

// Account is a user in a directory.
type Account struct {
	TenantID                id.ID   `json:"tenantId"`
	ID                      id.ID   `json:"id"`
	DirectoryID             id.ID   `json:"directoryId"`
	Username                string  `json:"username"`
	Email                   string  `json:"email"`
	GivenName               *string `json:"givenName"`
	MiddleName              *string `json:"middleName"`
	Surname                 *string `json:"surname"`
	Locale                  *string `json:"locale"`                  // BCP 47, in its canonical form
	Status                  string  `json:"status"`                  // Enabled, Disabled, Unverified or Locked
	EmailVerificationStatus string  `json:"emailVerificationStatus"` // Unknown, Unverified or Verified
	// VERIFIED as the provider makes no statement about the email
	EmailAssumed       bool   `json:"emailAssumed,omitempty"`
	VerificationSealed []byte `json:"verificationSealed,omitempty"`
	// AbsentSince is set while the directory server of a mirror no longer has the account: Status is
	// DISABLED then (services/directory/agent/absence.go).
	AbsentSince        *time.Time `json:"absentSince,omitempty"`
	PasswordModifiedAt *time.Time `json:"passwordModifiedAt"`
	Owner              bool       `json:"owner"` // owner of the tenant
	CreatedAt          time.Time  `json:"createdAt"`
	ModifiedAt         time.Time  `json:"modifiedAt"`

	// VerificationToken is the opened VerificationSealed, where it is shown.
	VerificationToken secure.Secret `json:"verificationToken,omitempty" db:"-"`
}

// Times returns the times of the collections below the account.
func (a Account) Times() (createdAt, modifiedAt time.Time) { return a.CreatedAt, a.ModifiedAt }

// FullName joins the names that the account has.
func (a Account) FullName() string {
	var parts []string
	for _, part := range []*string{a.GivenName, a.MiddleName, a.Surname} {
		if part != nil && strings.TrimSpace(*part) != "" {
			parts = append(parts, strings.TrimSpace(*part))
		}
	}
	return strings.Join(parts, " ")
}

// NewAccount is the body that creates or updates an account.
type NewAccount struct {
	Username   field.Text        `json:"username,omitzero"`
	Email      field.Text        `json:"email,omitzero"`
	Password   field.Text        `json:"password,omitzero"`
	GivenName  field.Text        `json:"givenName,omitzero"`
	MiddleName field.Text        `json:"middleName,omitzero"`
	Surname    field.Text        `json:"surname,omitzero"`
	Locale     field.Text        `json:"locale,omitzero"`
	Status     field.Text        `json:"status,omitzero"`
	CustomData customdata.Change `json:"customData,omitzero"`
	// EmailVerificationStatus is set by an administrator, never by a user who registers.
	EmailVerificationStatus field.Text `json:"emailVerificationStatus,omitzero"`
}

// CreateAccount is the request to create an account.
type CreateAccount struct {
	Tenant      id.ID      `json:"tenant"`
	ID          id.ID      `json:"id"`
	Directory   id.ID      `json:"directory"`
	Group       id.ID      `json:"group,omitzero"`       // group of the directory of which the account becomes a member
	Application id.ID      `json:"application,omitzero"` // through which the account is created, for its mails
	Account     NewAccount `json:"account"`
	// HashedPassword says that the password is an imported hash in the modular crypt format
	// (docs/interface/accounts.md#password-hashes).
	HashedPassword bool `json:"hashedPassword,omitempty"`
	// Workflow requests the directory's registration mails.
	Workflow bool `json:"workflow"`
	// SelfService says that the user registers himself, without an API key: he sets no customData but
	// what the account creation policy lists.
	SelfService bool `json:"selfService,omitempty"`
}

// ListAccounts is the request for a page of accounts.
type ListAccounts struct {
	Tenant id.ID      `json:"tenant"`
	Stores []Store    `json:"stores"`
	Query  list.Query `json:"query"`
}

// CheckAccess is the request of API.CheckAccess.
type CheckAccess struct {
	Tenant  id.ID   `json:"tenant"`
	Account id.ID   `json:"account"`
	Stores  []Store `json:"stores"`
}

// Access is an account that may act. It has only the members TenantID, ID, DirectoryID, Status, CreatedAt
// and PasswordModifiedAt.
type Access struct {
	Account
	// DependsOn are the resources whose change may end the access, which is reported by AccessChanges.
	DependsOn []id.ID `json:"dependsOn,omitempty"`
}
