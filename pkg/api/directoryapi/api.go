// Package directoryapi is the contract of the directory service: tenants,
// directories, accounts, and who may log in.
package directoryapi

import (
	"context"
	"time"

	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/list"
	"github.com/doorward/doorward/pkg/secure"
)

// API is what peers ask of the directory service.
type API interface {
	// SignUp makes a tenant with its administrators directory and its owner's
	// account. A repeated call gives what the first made.
	SignUp(context.Context, SignUp) (SignedUp, error)

	// CreateDirectory makes a cloud directory with its policies. It returns
	// apierr.Exists when the name is taken in the tenant.
	CreateDirectory(context.Context, CreateDirectory) (Directory, error)

	// Directory gives a directory, or apierr.NotFound.
	Directory(context.Context, Ref) (Directory, error)

	// DeleteDirectory removes a directory with all that it holds, or returns
	// apierr.NotFound. It undoes CreateDirectory.
	DeleteDirectory(context.Context, Ref) (Empty, error)

	// CreateAccount makes an account in a directory. It returns the
	// validation errors of the interface, apierr.Exists, apierr.NotFound for
	// the directory, and apierr.AccountStoreDisabled for a disabled one.
	CreateAccount(context.Context, CreateAccount) (Account, error)

	// Account gives an account, or apierr.NotFound.
	Account(context.Context, Ref) (Account, error)

	// ListAccounts gives a page of the accounts of all the stores, each once.
	ListAccounts(context.Context, ListAccounts) (list.Page[Account], error)

	// Authenticate checks a password. The first of the stores that holds an
	// account of that login decides; the work is the same when none does. It
	// returns apierr.NoSuchAccount, WrongPassword, AccountDisabled,
	// AccountUnverified, DirectoryDisabled, or Unavailable when too many
	// passwords are being checked.
	Authenticate(context.Context, Authenticate) (Account, error)

	// Standing tells whether an account may act through one of the stores
	// now. It returns apierr.TokenAccountDisabled for an account that is gone
	// or not enabled, TokenStoreDisabled when only a disabled store holds it,
	// and TokenAccountUnreachable when none does.
	Standing(context.Context, Standing) (Account, error)

	// Mail gives what a mail of a workflow to an account is made of. It returns
	// apierr.NotFound when the account is gone or the workflow is off.
	Mail(context.Context, MailOf) (Mail, error)
}

// The values of status fields.
const (
	Enabled    = "ENABLED"
	Disabled   = "DISABLED"
	Unverified = "UNVERIFIED"
	Verified   = "VERIFIED"
	Unknown    = "UNKNOWN"
)

// Empty answers a request that has nothing to say.
type Empty struct{}

// Ref names a resource of a tenant.
type Ref struct {
	Tenant id.ID `json:"tenant"`
	ID     id.ID `json:"id"`
}

// Tenant is the private data space of one customer.
type Tenant struct {
	ID         id.ID     `json:"id" db:"tenant_id"`
	Key        string    `json:"key"`
	Name       string    `json:"name"`
	CreatedAt  time.Time `json:"createdAt"`
	ModifiedAt time.Time `json:"modifiedAt"`
}

// Directory is a container of accounts.
type Directory struct {
	TenantID    id.ID     `json:"tenantId"`
	ID          id.ID     `json:"id"`
	Name        string    `json:"name"`
	Description *string   `json:"description"`
	Status      string    `json:"status"`  // Enabled or Disabled
	Builtin     bool      `json:"builtin"` // the administrators directory, which cannot be deleted
	SchemaID    id.ID     `json:"schemaId"`
	CreatedAt   time.Time `json:"createdAt"`
	ModifiedAt  time.Time `json:"modifiedAt"`
}

// Account is an identity in a directory.
type Account struct {
	TenantID                id.ID      `json:"tenantId"`
	ID                      id.ID      `json:"id"`
	DirectoryID             id.ID      `json:"directoryId"`
	Username                string     `json:"username"`
	Email                   string     `json:"email"`
	GivenName               *string    `json:"givenName"`
	MiddleName              *string    `json:"middleName"`
	Surname                 *string    `json:"surname"`
	Status                  string     `json:"status"`                  // Enabled, Disabled or Unverified
	EmailVerificationStatus string     `json:"emailVerificationStatus"` // Unknown, Unverified or Verified
	VerificationSealed      []byte     `json:"verificationSealed,omitempty"`
	PasswordModifiedAt      *time.Time `json:"passwordModifiedAt"`
	Owner                   bool       `json:"owner"` // owner of the tenant
	CreatedAt               time.Time  `json:"createdAt"`
	ModifiedAt              time.Time  `json:"modifiedAt"`

	// VerificationToken is what VerificationSealed holds, where it is shown.
	VerificationToken secure.Secret `json:"verificationToken,omitempty" db:"-"`
}

// NewAccount is the body that creates an account.
type NewAccount struct {
	Username   field.Text `json:"username,omitzero"`
	Email      field.Text `json:"email,omitzero"`
	Password   field.Text `json:"password,omitzero"`
	GivenName  field.Text `json:"givenName,omitzero"`
	MiddleName field.Text `json:"middleName,omitzero"`
	Surname    field.Text `json:"surname,omitzero"`
	Status     field.Text `json:"status,omitzero"`
}

// Store is a place where accounts are looked for: a directory.
type Store struct {
	Kind string `json:"kind"` // "directories"
	ID   id.ID  `json:"id"`
}

// SignUp asks for a tenant.
type SignUp struct {
	Tenant        id.ID         `json:"tenant"`
	Directory     id.ID         `json:"directory"` // id of the administrators directory
	Owner         id.ID         `json:"owner"`     // id of the owner's account
	Key           string        `json:"key"`       // of the tenant: two words
	DirectoryName string        `json:"directoryName"`
	Email         string        `json:"email"`
	Password      secure.Secret `json:"password"` // empty: none can log in until it is reset
}

// SignedUp is a new tenant.
type SignedUp struct {
	Tenant    Tenant    `json:"tenant"`
	Directory Directory `json:"directory"`
	Owner     Account   `json:"owner"`
}

// CreateDirectory asks for a directory.
type CreateDirectory struct {
	Tenant id.ID  `json:"tenant"`
	ID     id.ID  `json:"id"`
	Name   string `json:"name"`
}

// CreateAccount asks for an account.
type CreateAccount struct {
	Tenant      id.ID      `json:"tenant"`
	ID          id.ID      `json:"id"`
	Directory   id.ID      `json:"directory"`
	Application id.ID      `json:"application,omitzero"` // through which it is created, for its mails
	Account     NewAccount `json:"account"`
	// Workflow lets the directory's registration mails go out.
	Workflow bool `json:"workflow"`
}

// ListAccounts asks for a page.
type ListAccounts struct {
	Tenant id.ID      `json:"tenant"`
	Stores []Store    `json:"stores"`
	Query  list.Query `json:"query"`
}

// Authenticate asks for a login.
type Authenticate struct {
	Tenant   id.ID         `json:"tenant"`
	Stores   []Store       `json:"stores"` // in the order of login
	Login    string        `json:"login"`  // user name or email
	Password secure.Secret `json:"password"`
}

// Standing asks after an account.
type Standing struct {
	Tenant  id.ID   `json:"tenant"`
	Account id.ID   `json:"account"`
	Stores  []Store `json:"stores"`
}

// Workflow is a kind of mail to an account.
type Workflow string

// The workflows (resolutions, section 18.1).
const (
	Verification        Workflow = "verification"
	VerificationSuccess Workflow = "verificationSuccess"
	Welcome             Workflow = "welcome"
	Reset               Workflow = "reset"
	ResetSuccess        Workflow = "resetSuccess"
)

// MailOf asks for the parts of a mail.
type MailOf struct {
	Tenant   id.ID    `json:"tenant"`
	Account  id.ID    `json:"account"`
	Workflow Workflow `json:"workflow"`
}

// Mail is a template and the values that it speaks of.
type Mail struct {
	Template  EmailTemplate `json:"template"`
	Account   Account       `json:"account"`
	Directory Directory     `json:"directory"`
}

// EmailTemplate is the text of a workflow's mail.
type EmailTemplate struct {
	TenantID         id.ID     `json:"tenantId"`
	ID               id.ID     `json:"id"`
	DirectoryID      id.ID     `json:"directoryId"`
	Workflow         Workflow  `json:"workflow"`
	Name             string    `json:"name"`
	Description      *string   `json:"description"`
	FromName         *string   `json:"fromName"`         // nil: the deployment's
	FromEmailAddress *string   `json:"fromEmailAddress"` // nil: the deployment's
	Subject          string    `json:"subject"`
	MimeType         string    `json:"mimeType"` // text/plain, text/html or multipart/alternative
	TextBody         string    `json:"textBody"`
	HTMLBody         string    `json:"htmlBody" db:"html_body"`
	LinkBaseURL      *string   `json:"linkBaseUrl" db:"link_base_url"` // nil: the template has no link, or the deployment's page
	CreatedAt        time.Time `json:"createdAt"`
	ModifiedAt       time.Time `json:"modifiedAt"`
}
