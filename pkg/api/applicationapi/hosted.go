package applicationapi

import (
	"context"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
)

// Hosted has the methods for the hosted login and the Client API (services/idsite), which act for
// users without an API key.
type Hosted interface {
	// ApplicationByDNSLabel returns the application with a DNS label, of any tenant, or
	// apierr.NotFound.
	ApplicationByDNSLabel(context.Context, DNSLabel) (Application, error)

	// LoginDirectories returns the directories in which a login name is looked up, in the order of
	// login, and the default account store. It returns apierr.NotFound for the application, and
	// Reference, NotMapped or OrganizationDisabled for the account store of Where. For an
	// application without account stores it returns no directories, and no error.
	LoginDirectories(context.Context, LoginTarget) (LoginDirectories, error)

	// Register creates an account (self-service registration) in the default account store of
	// the application, or in the account store that Where names. The status and the
	// verification status in Account are ignored. It returns the errors of LoginDirectories, the
	// errors of a new account, and NoAccountStore or AccountStoreDisabled, and those of an
	// organization, where there is no enabled default store.
	Register(context.Context, Register) (directoryapi.Account, error)

	// RequestVerification sends another verification mail to the account of a login name, within
	// directoryapi.MaxAnonymousMails. It returns apierr.NoSuchResource for an unknown login name,
	// VerificationDisabled, and the errors of LoginDirectories.
	RequestVerification(context.Context, LoginName) (directoryapi.Empty, error)

	// RequestReset sends a password reset mail (forgot password) to the account of a login name,
	// within directoryapi.MaxAnonymousMails. It returns apierr.NoSuchResource for an unknown
	// login name, and the errors of LoginDirectories.
	RequestReset(context.Context, LoginName) (directoryapi.Empty, error)

	// LoginAccount returns the account whose password a login with a login name compares, or
	// apierr.NotFound, and the errors of LoginDirectories. The caller must have verified the password before
	// it tells anything of the account.
	LoginAccount(context.Context, LoginName) (directoryapi.Account, error)

	// CheckReset returns the password reset of a token, which stays valid, or apierr.NotFound for
	// a token that is unknown, used or expired, and for a disabled application.
	CheckReset(context.Context, ResetToken) (directoryapi.PasswordReset, error)

	// ResetPassword sets a new password by a token, which is valid once. It returns the errors
	// of CheckReset and those of a new password.
	ResetPassword(context.Context, ResetPassword) (directoryapi.PasswordReset, error)

	// AccountApplications returns at most 100 applications that have an account in their account
	// stores, or apierr.NotFound for the account.
	AccountApplications(context.Context, directoryapi.Ref) (Applications, error)

	// Homes returns the enabled applications of a tenant that have a HomeURL of their own, the oldest first, at most
	// MaxHomes. The built-in application is none of them.
	Homes(context.Context, Homes) (Applications, error)

	SAML
}

// DNSLabel is the request of Hosted.ApplicationByDNSLabel.
type DNSLabel struct {
	Label string `json:"label"` // in any letter case
}

// LoginTarget names an application, and may name one of its account stores by AccountStore or by
// NameKey, not by both.
type LoginTarget struct {
	Tenant       id.ID     `json:"tenant"`
	Application  id.ID     `json:"application"`
	AccountStore href.Link `json:"accountStore,omitzero"` // a directory, group or organization
	NameKey      string    `json:"nameKey,omitempty"`     // of an organization
	// LoginDirectories leaves out Default, which costs another query
	Brief bool `json:"brief,omitempty"`
	// DirectOnly is for LoginDirectories without the account stores of organizations, unless it
	// names an organization.
	DirectOnly bool `json:"directOnly,omitempty"`
}

// LoginDirectories is the answer of Hosted.LoginDirectories.
type LoginDirectories struct {
	Status      string  `json:"status"`      // of the application; a disabled application has no Directories
	Directories []id.ID `json:"directories"` // mapped directories in the order of login, each once
	// Default is the directory in which a registration creates the account; zero: there is no
	// enabled default account store.
	Default id.ID `json:"default,omitzero"`
	// Organization is the organization that Where names; zero: none.
	Organization id.ID  `json:"organization,omitzero"`
	NameKey      string `json:"nameKey,omitempty"` // of Organization
	// HasOrganizations says whether organizations are mapped to the application.
	HasOrganizations bool `json:"hasOrganizations,omitempty"`
}

// Register is the request to create an account.
type Register struct {
	LoginTarget
	Account directoryapi.NewAccount `json:"account"`
}

// LoginName names an account by its user name or email.
type LoginName struct {
	LoginTarget
	Login string `json:"login"`
}

// ResetToken is a password reset token, with the application in which it is used.
type ResetToken struct {
	Tenant      id.ID         `json:"tenant"`
	Application id.ID         `json:"application"`
	Token       secure.Secret `json:"token"`
}

// ResetPassword is the request to set a new password by a password reset token.
type ResetPassword struct {
	ResetToken
	Password secure.Secret `json:"password"`
}

// Homes is the request of Hosted.Homes.
type Homes struct {
	Tenant id.ID `json:"tenant"`
}

// MaxHomes is how many applications Hosted.Homes returns.
const MaxHomes = 5

// Applications is a list of applications.
type Applications struct {
	Items []Application `json:"items"`
}
