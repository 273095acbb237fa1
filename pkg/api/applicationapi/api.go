// Package applicationapi is the contract of the application service: logins
// through an application's account stores.
package applicationapi

import (
	"context"
	"time"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/changefeed"
	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
)

// API is what peers ask of the application service.
type API interface {
	// SignUp makes the first applications of a tenant: the built-in console, mapped
	// to the administrators directory, and My Application with its directory. A
	// repeated call returns what the first made.
	SignUp(context.Context, SignUp) (SignedUp, error)

	// Application returns an application, or apierr.NotFound.
	Application(context.Context, directoryapi.Ref) (Application, error)

	// ApplicationOfWebConfig returns the application that has the web config of that
	// id, or apierr.NotFound.
	ApplicationOfWebConfig(context.Context, directoryapi.Ref) (Application, error)

	// SetDNSLabel renames the Client API of an application. It returns
	// apierr.NotFound for the application, Format or TooLong for what is no label of
	// a host name, Exists for one that any application of the deployment has, and
	// BadRequest for the console.
	SetDNSLabel(context.Context, SetDNSLabel) (Application, error)

	// ApplicationData returns the values of keys of an application's customData, as
	// they stand in a text, or apierr.NotFound.
	ApplicationData(context.Context, DataOf) (Data, error)

	// Login checks a password against the application's account stores in their
	// order, organizations expanded into theirs. It returns apierr.NotFound for the
	// application, the errors of directoryapi's Authenticate, OrganizationDisabled,
	// NoStores, OrgNoStores, NotMapped, Reference, NoSuchAccount for a disabled
	// application, and TooMany with the time to wait where too many logins have
	// failed: of the login, or at the address of the Caller. The account that it
	// returns may be one that the account of the login is linked to, and the error
	// that of such a one (docs/interface/account-linking.md#outcome-at-login).
	Login(context.Context, Login) (LoggedIn, error)

	// CompleteLogin logs in an account that was authenticated otherwise than by its
	// password: by an assertion, a provider or a factor. It returns the errors
	// of CheckAccess, and those of Login for what AccountStore and NameKey name.
	// Links are followed as Login follows them; where they lead to an account
	// that may not log in, it returns that account's refusal: AccountDisabled,
	// AccountUnverified, GroupDisabled, DirectoryDisabled or
	// OrganizationDisabled.
	CompleteLogin(context.Context, CompleteLogin) (LoggedIn, error)

	// CheckAccess reports whether an account may act through the application now. In
	// the order of the interface (docs/interface/errors.md#failed-validation) it
	// returns apierr.TokenAccountDisabled, TokenApplicationDisabled,
	// TokenStoreDisabled or TokenAccountUnreachable; apierr.NotFound for an
	// application that does not exist. The last two are also for an account whose
	// login named an organization that is disabled now, or no longer mapped, or whose
	// account stores no longer hold it, though it is reached otherwise.
	CheckAccess(context.Context, CheckAccess) (Access, error)

	// AccessChanges returns which applications and organizations have changed since a
	// position, themselves or in their account stores.
	AccessChanges(context.Context, changefeed.Position) (changefeed.Page, error)

	// Administrator returns an account that administers its tenant: one that the
	// account stores of the built-in application hold, whatever the status of that
	// application. It returns apierr.TokenAccountDisabled, TokenStoreDisabled or
	// TokenAccountUnreachable as CheckAccess does, and NotFound for a tenant without a
	// built-in application.
	Administrator(context.Context, directoryapi.Ref) (directoryapi.Account, error)

	// Reaches reports whether an account store of the application holds an account,
	// whatever the status of either, of what lies between them and of the account.
	// It returns apierr.NotFound for the application; an account that does not exist
	// is in no store.
	Reaches(context.Context, Reaches) (Reached, error)

	// ProviderLogin logs in the user of a social or OAuth provider, through the
	// directory of that provider which the application reaches. It returns
	// apierr.NotFound for the application, apierr.DirectoryTypeUnavailable when it
	// has no such directory, OrgDirectoryTypeUnmapped when the organization that is
	// named has none, those errors of Login that are about the account store,
	// OrganizationDisabled, the errors of directoryapi's SocialAccount, and those of
	// Login about the account that links lead to.
	ProviderLogin(context.Context, ProviderLogin) (ProviderLoggedIn, error)
}

// Application is a program that leaves its users to the service.
type Application struct {
	TenantID               id.ID     `json:"tenantId"`
	ID                     id.ID     `json:"id"`
	Name                   string    `json:"name"`
	Description            *string   `json:"description"`
	Status                 string    `json:"status"`
	Builtin                bool      `json:"builtin"`             // the console, which cannot be deleted
	DNSLabel               string    `json:"dnsLabel,omitempty"`  // names its Client API; empty for the console, which has none
	CreatedBy              string    `json:"createdBy,omitempty"` // id of the API key that asked for it; empty for those of the sign-up
	AuthorizedCallbackURIs []string  `json:"authorizedCallbackUris" db:"authorized_callback_uris"`
	AuthorizedOriginURIs   []string  `json:"authorizedOriginUris" db:"authorized_origin_uris"`
	DefaultAccountStore    id.ID     `json:"defaultAccountStore,omitzero"` // mapping that holds the flag
	DefaultGroupStore      id.ID     `json:"defaultGroupStore,omitzero"`   // mapping that holds the flag
	SAMLPolicyID           id.ID     `json:"samlPolicyId" db:"saml_policy_id"`
	WebConfigID            id.ID     `json:"webConfigId" db:"web_config_id"`
	AccountLinkingPolicyID id.ID     `json:"accountLinkingPolicyId" db:"account_linking_policy_id"`
	CreatedAt              time.Time `json:"createdAt"`
	ModifiedAt             time.Time `json:"modifiedAt"`
}

// Times returns the times of the collections below the application.
func (a Application) Times() (createdAt, modifiedAt time.Time) { return a.CreatedAt, a.ModifiedAt }

// DomainName is the host name of the application's Client API in a deployment
// with that suffix; empty where it has none. Pages of https://<DomainName> may
// call that Client API whatever AuthorizedOriginURIs says.
func (a Application) DomainName(suffix string) string {
	if a.DNSLabel == "" {
		return ""
	}
	return a.DNSLabel + "." + suffix
}

// SetDNSLabel asks for another label, in any letter case.
type SetDNSLabel struct {
	Tenant      id.ID  `json:"tenant"`
	Application id.ID  `json:"application"`
	Label       string `json:"label"`
}

// DataOf asks for values of an application's customData.
type DataOf struct {
	directoryapi.Ref
	Keys []string `json:"keys"`
}

// Data are values of customData by their keys; one that cannot stand in a text,
// such as an object, is not among them.
type Data struct {
	Values map[string]string `json:"values"`
}

// SignUp asks for the first applications of a tenant. The ids are the
// caller's, so that a repeated call finds them.
type SignUp struct {
	Tenant             id.ID  `json:"tenant"`
	Console            id.ID  `json:"console"`
	ConsoleName        string `json:"consoleName"`
	Administrators     id.ID  `json:"administrators"` // directory
	ConsoleMapping     id.ID  `json:"consoleMapping"`
	Application        id.ID  `json:"application"`
	ApplicationMapping id.ID  `json:"applicationMapping"`
	Directory          id.ID  `json:"directory"` // of My Application
}

// SignedUp is what SignUp made.
type SignedUp struct {
	Console     Application `json:"console"`
	Application Application `json:"application"`
}

// Login asks for a login.
type Login struct {
	Tenant      id.ID         `json:"tenant"`
	Application id.ID         `json:"application"`
	Login       string        `json:"login"` // user name or email
	Password    secure.Secret `json:"password"`
	// AccountStore restricts the login to one mapped store, where it is set.
	AccountStore href.Link `json:"accountStore,omitzero"`
	// NameKey restricts the login to the mapped organization of that key, where
	// it is set and AccountStore is not.
	NameKey string `json:"nameKey,omitempty"`
}

// CompleteLogin is the login of an account that was authenticated already.
type CompleteLogin struct {
	Tenant      id.ID `json:"tenant"`
	Application id.ID `json:"application"`
	Account     id.ID `json:"account"`
	// AccountStore and NameKey restrict the login as those of Login do.
	AccountStore href.Link `json:"accountStore,omitzero"`
	NameKey      string    `json:"nameKey,omitempty"`
	// Read is the account as the directory service has just read it, enabled and in an
	// enabled directory. Where that directory is an account store of the login, the
	// account is not read again. It may be nil.
	Read *directoryapi.Account `json:"read,omitempty"`
}

// LoggedIn is the account that logged in.
type LoggedIn struct {
	Account directoryapi.Account `json:"account"`
	// Organization is the one that the login named, if any.
	Organization id.ID `json:"organization,omitzero"`
}

// CheckAccess is the request of API.CheckAccess.
type CheckAccess struct {
	Tenant      id.ID `json:"tenant"`
	Application id.ID `json:"application"`
	Account     id.ID `json:"account"`
	// Organization is the one that the account's login named, if any.
	Organization id.ID `json:"organization,omitzero"`
	// Brief and Recent are those of directoryapi.CheckAccess.
	Brief  bool `json:"brief,omitempty"`
	Recent bool `json:"recent,omitempty"`
	// Keep, with Brief and without Recent, asks for DependsOn. Nothing of the answer
	// comes from a cache then.
	Keep bool `json:"keep,omitempty"`
}

// Access is an account that may act through an application.
type Access struct {
	directoryapi.Account
	// DependsOn are the resources whose change may end the access, which AccessChanges here
	// and that of the directory service report. It is empty where the answer may not be
	// kept.
	DependsOn []id.ID `json:"dependsOn,omitempty"`
}

// Reaches asks whether an application reaches an account.
type Reaches struct {
	Tenant      id.ID `json:"tenant"`
	Application id.ID `json:"application"`
	Account     id.ID `json:"account"`
}

// Reached is the answer to Reaches.
type Reached struct {
	Reached bool `json:"reached"`
}

// ProviderLogin asks for a login at a provider.
type ProviderLogin struct {
	Tenant      id.ID `json:"tenant"`
	Application id.ID `json:"application"`
	// Directory is that of the provider; zero: the first one of the provider that
	// Login names.
	Directory id.ID `json:"directory,omitzero"`
	// Login has the account store that restricts the login, too.
	Login directoryapi.SocialLogin `json:"login"`
}

// ProviderLoggedIn is the account that logged in.
type ProviderLoggedIn struct {
	LoggedIn
	IsNew bool `json:"isNew"` // the login created it
}
