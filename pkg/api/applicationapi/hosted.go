package applicationapi

import (
	"context"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
)

// Hosted is what the hosted login and the Client API ask of the application
// service for a browser that holds no API key. It is a contract of its own, so
// that other peers need not know it.
type Hosted interface {
	// ApplicationByDNSLabel returns the application whose Client API has the
	// label, of any tenant, or apierr.NotFound.
	ApplicationByDNSLabel(context.Context, DNSLabel) (Application, error)

	// LoginStores returns the directories that a login is looked for in, in the
	// order of login, and the default account store. It returns apierr.NotFound
	// for the application, and Reference, NotMapped or OrganizationDisabled for
	// what Where names. An application without stores has none: no error.
	LoginStores(context.Context, Where) (LoginStores, error)

	// Register creates an account in the default account store of the application,
	// or in the store or organization that Where names. The status and the
	// verification status of the account are not the caller's to set. It returns
	// the errors of LoginStores, those of a new account, and NoAccountStore and
	// its like where no default store is configured.
	Register(context.Context, Register) (directoryapi.Account, error)

	// RequestVerification sends another verification mail to the account of a
	// login, within directoryapi.MaxAnonymousMails. It returns apierr.NoSuchResource for
	// an unknown login, VerificationDisabled, and the errors of LoginStores.
	RequestVerification(context.Context, LoginName) (directoryapi.Empty, error)

	// RequestReset sends a password reset mail to the account of a login, within
	// directoryapi.MaxAnonymousMails. It returns apierr.NoSuchResource for an unknown
	// login, and the errors of LoginStores.
	RequestReset(context.Context, LoginName) (directoryapi.Empty, error)

	// CheckReset returns the reset of a token, or apierr.NotFound for one that is
	// unknown, used or expired, or when the application is disabled.
	CheckReset(context.Context, ResetToken) (directoryapi.PasswordReset, error)

	// ResetPassword sets a new password, once. It returns the errors of
	// CheckReset and those of a new password.
	ResetPassword(context.Context, ResetPassword) (directoryapi.PasswordReset, error)

	// AccountApplications returns the applications that reach an account, at most
	// 100 of them, or apierr.NotFound for the account.
	AccountApplications(context.Context, directoryapi.Ref) (Applications, error)

	SAML
}

// DNSLabel names the Client API of an application in the deployment.
type DNSLabel struct {
	Label string `json:"label"` // in any letter case
}

// Where is an application and, where a login names one, an account store of it:
// AccountStore or NameKey, not both.
type Where struct {
	Tenant       id.ID     `json:"tenant"`
	Application  id.ID     `json:"application"`
	AccountStore href.Link `json:"accountStore,omitzero"` // a directory, group or organization
	NameKey      string    `json:"nameKey,omitempty"`     // of an organization
	Brief        bool      `json:"brief,omitempty"`       // the answer of LoginStores needs no Default
}

// LoginStores is where logins of an application go.
type LoginStores struct {
	Status      string  `json:"status"`      // of the application; one that is disabled has no stores
	Directories []id.ID `json:"directories"` // mapped directories in the order of login, each once
	// Default is the directory that a registration goes to; zero: there is none
	// that is enabled.
	Default id.ID `json:"default,omitzero"`
	// Organization is the one that Where names, if any.
	Organization id.ID  `json:"organization,omitzero"`
	NameKey      string `json:"nameKey,omitempty"` // of Organization
	// HasOrganizations is whether organizations are mapped to the application.
	HasOrganizations bool `json:"hasOrganizations,omitempty"`
}

// Register asks for an account.
type Register struct {
	Where
	Account directoryapi.NewAccount `json:"account"`
}

// LoginName names an account by its user name or email.
type LoginName struct {
	Where
	Login string `json:"login"`
}

// ResetToken names a password reset of an application.
type ResetToken struct {
	Tenant      id.ID         `json:"tenant"`
	Application id.ID         `json:"application"`
	Token       secure.Secret `json:"token"`
}

// ResetPassword uses a password reset.
type ResetPassword struct {
	ResetToken
	Password secure.Secret `json:"password"`
}

// Applications are several applications.
type Applications struct {
	Items []Application `json:"items"`
}
