// Package applicationapi is the contract of the application service (services/application), which
// other services call by RPC: applications, logins through their account stores, and the check
// whether an account may still act.
package applicationapi

import (
	"context"
	"time"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/cache"
	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/redirecturi"
	"github.com/doorward/doorward/pkg/secure"
)

//go:generate go run ../internal/generate application Contract

// Contract has all methods of the application service that other services call.
type Contract interface {
	API
	Hosted
}

// API has the methods for all services; those for the hosted login alone are in Hosted.
type API interface {
	// SignUp creates the first applications of a tenant: the built-in console, with the
	// administrators directory as its account store, and My Application with its directory. It
	// is idempotent: a repeated call returns what the first has created.
	SignUp(context.Context, SignUp) (SignedUp, error)

	// Application returns an application, or apierr.NotFound.
	Application(context.Context, directoryapi.Ref) (Application, error)

	// FindApplication returns an application of any tenant by its id alone, or apierr.NotFound: the public
	// addresses of an OpenID provider name nothing else.
	FindApplication(context.Context, FindApplication) (Application, error)

	// ApplicationOfWebConfig returns the application whose web config has an id, or
	// apierr.NotFound.
	ApplicationOfWebConfig(context.Context, directoryapi.Ref) (Application, error)

	// SetDNSLabel changes the DNS label of an application, the host name of its Client API. It
	// returns apierr.NotFound for the application, Format or TooLong for text that is no label
	// of a host name, Exists for a label that any application of the deployment has, and
	// BadRequest for the console.
	SetDNSLabel(context.Context, SetDNSLabel) (Application, error)

	// ApplicationData returns values of an application's customData by their keys, as texts, or
	// apierr.NotFound.
	ApplicationData(context.Context, CustomDataRequest) (CustomDataValues, error)

	// Login logs an account in by its password. The login name is looked up in the application's
	// account stores in their order, with each organization replaced by its account stores. It
	// returns apierr.NotFound for the application, the errors of directoryapi's Authenticate,
	// OrganizationDisabled, NoStores, OrgNoStores, NotMapped, Reference, NoSuchAccount for a
	// disabled application, and TooMany with the time to wait after too many failed logins: of
	// the login name, or at the address of the Caller. The result may be a linked account of the
	// account with the login name, or the error of the linked account
	// (docs/interface/account-linking.md#outcome-at-login).
	Login(context.Context, Login) (LoggedIn, error)

	// CompleteLogin logs in an account that was authenticated by an assertion, a provider or a
	// second factor, without a password. It returns the errors of CheckAccess, and the errors
	// of Login for AccountStore and NameKey. Account links are followed as by Login; where the
	// linked account may not log in, it returns AccountDisabled, AccountUnverified,
	// GroupDisabled, DirectoryDisabled or OrganizationDisabled.
	CompleteLogin(context.Context, CompleteLogin) (LoggedIn, error)

	// CheckAccess returns an account if it may act through the application now: the check at
	// each use of a token. In the order of the interface
	// (docs/interface/errors.md#failed-validation) it returns apierr.TokenAccountDisabled,
	// TokenApplicationDisabled, TokenStoreDisabled or TokenAccountUnreachable; apierr.NotFound
	// for an application that does not exist. Where the login named an organization, the last
	// two are also returned where the organization is disabled now, or no longer mapped, or no
	// longer has the account, though the account is in other stores of the application. The answer
	// is as of at most 50 ms ago. What it depends on is reported by AccessChanges of this and of the
	// directory service.
	CheckAccess(context.Context, CheckAccess) (directoryapi.Access, error)

	// AccessChanges returns the applications and organizations that have changed since a
	// position, themselves or in their account store mappings (cache.Answers).
	AccessChanges(context.Context, cache.Position) (cache.Page, error)

	// Administrator returns an account if it is an administrator of its tenant: an account in
	// the account stores of the built-in application, whatever the status of that application.
	// It returns apierr.TokenAccountDisabled, TokenStoreDisabled or TokenAccountUnreachable as
	// CheckAccess does, and NotFound for a tenant without a built-in application.
	Administrator(context.Context, directoryapi.Ref) (directoryapi.Access, error)

	// HasAccount reports whether an account is in an account store of the application, whatever the
	// status of the account, the application, the store and an organization between them. It
	// returns apierr.NotFound for the application; an account that does not exist is in no
	// store.
	HasAccount(context.Context, HasAccountRequest) (HasAccountAnswer, error)

	// LoginContext returns what a token may say of the place of an account: the names of its enabled groups in the
	// account stores of an application, and the organization that its login named. It returns apierr.NotFound for
	// the account, and leaves out an organization that was deleted.
	LoginContext(context.Context, AskLoginContext) (LoginContext, error)

	// ProviderLogin logs in the user of a social or OAuth provider (social login), in a directory
	// of that provider that is an account store of the application. It returns apierr.NotFound
	// for the application, NoSuchAccount for a disabled one, DirectoryTypeUnavailable where it
	// has no such directory, OrgDirectoryTypeUnmapped where the named organization has none, the
	// errors of Login for the account store, OrganizationDisabled, the errors of directoryapi's
	// SocialAccount, and the errors of Login for a linked account.
	ProviderLogin(context.Context, ProviderLogin) (ProviderLoggedIn, error)
}

// Application is a program whose users log in by Doorward.
type Application struct {
	TenantID    id.ID   `json:"tenantId"`
	ID          id.ID   `json:"id"`
	Name        string  `json:"name"`
	Description *string `json:"description"`
	Status      string  `json:"status"`
	Builtin     bool    `json:"builtin"` // the console, which cannot be deleted
	// names its Client API; empty for the console, which has none
	DNSLabel string `json:"dnsLabel,omitempty"`
	// id of the API key of the request; empty for applications of SignUp
	CreatedBy              string    `json:"createdBy,omitempty"`
	AuthorizedCallbackURIs []string  `json:"authorizedCallbackUris" db:"authorized_callback_uris"`
	AuthorizedOriginURIs   []string  `json:"authorizedOriginUris" db:"authorized_origin_uris"`
	HomeURL                *string   `json:"homeUrl" db:"home_url"`        // nil: see Home
	DefaultAccountStore    id.ID     `json:"defaultAccountStore,omitzero"` // mapping with the flag
	DefaultGroupStore      id.ID     `json:"defaultGroupStore,omitzero"`   // mapping with the flag
	SAMLPolicyID           id.ID     `json:"samlPolicyId" db:"saml_policy_id"`
	WebConfigID            id.ID     `json:"webConfigId" db:"web_config_id"`
	AccountLinkingPolicyID id.ID     `json:"accountLinkingPolicyId" db:"account_linking_policy_id"`
	CreatedAt              time.Time `json:"createdAt"`
	ModifiedAt             time.Time `json:"modifiedAt"`
}

// Times returns the times that collections of the application show.
func (a Application) Times() (createdAt, modifiedAt time.Time) { return a.CreatedAt, a.ModifiedAt }

// Home returns the address at which users find the application: its HomeURL, else the origin of its default
// callback. It is empty where neither is known.
func (a Application) Home() string {
	if a.HomeURL != nil {
		return *a.HomeURL
	}
	return redirecturi.DefaultOrigin(a.AuthorizedCallbackURIs)
}

// DomainName returns the host name of the application's Client API; empty where it has none.
// suffix is the domain of Client APIs of the deployment. Pages of https://<DomainName> may call
// the Client API whatever AuthorizedOriginURIs has (CORS).
func (a Application) DomainName(suffix string) string {
	if a.DNSLabel == "" {
		return ""
	}
	return a.DNSLabel + "." + suffix
}

// FindApplication is the request of API.FindApplication.
type FindApplication struct {
	ID id.ID `json:"id"`
}

// SetDNSLabel is the request to change a DNS label. Label may be in any letter case.
type SetDNSLabel struct {
	Tenant      id.ID  `json:"tenant"`
	Application id.ID  `json:"application"`
	Label       string `json:"label"`
}

// CustomDataRequest is the request for values of an application's customData.
type CustomDataRequest struct {
	directoryapi.Ref
	Keys []string `json:"keys"`
}

// CustomDataValues has values of customData by their keys, without those that are no text, such as objects.
type CustomDataValues struct {
	Values map[string]string `json:"values"`
}

// SignUp is the request to create the first applications of a tenant. The caller chooses the ids,
// so that a repeated call is idempotent.
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

// SignedUp has the applications that SignUp has created. A deleted Application is the zero value.
type SignedUp struct {
	Console     Application `json:"console"`
	Application Application `json:"application"`
}

// Login is the request of API.Login.
type Login struct {
	Tenant      id.ID         `json:"tenant"`
	Application id.ID         `json:"application"`
	Login       string        `json:"login"` // user name or email
	Password    secure.Secret `json:"password"`
	// AccountStore, where set, is the only mapped account store in which Login is looked up.
	AccountStore href.Link `json:"accountStore,omitzero"`
	// NameKey, where set and AccountStore is not, is the nameKey of the only mapped organization
	// in which Login is looked up.
	NameKey string `json:"nameKey,omitempty"`
}

// CompleteLogin is the request of API.CompleteLogin.
type CompleteLogin struct {
	Tenant      id.ID `json:"tenant"`
	Application id.ID `json:"application"`
	Account     id.ID `json:"account"`
	// AccountStore and NameKey restrict the login as those of Login do.
	AccountStore href.Link `json:"accountStore,omitzero"`
	NameKey      string    `json:"nameKey,omitempty"`
	// IsLogin says that the login begins here, at a provider, so that it is counted: a session that is used again, and
	// an assertion of a login, are none.
	IsLogin bool `json:"isLogin,omitempty"`
}

// LoggedIn is the account that logged in.
type LoggedIn struct {
	Account directoryapi.Account `json:"account"`
	// Organization is the organization that the login named; zero: none.
	Organization id.ID `json:"organization,omitzero"`
}

// CheckAccess is the request of API.CheckAccess.
type CheckAccess struct {
	Tenant      id.ID `json:"tenant"`
	Application id.ID `json:"application"`
	Account     id.ID `json:"account"`
	// Organization is the organization that the account's login named; zero: none.
	Organization id.ID `json:"organization,omitzero"`
}

// HasAccountRequest is the request of API.HasAccount.
type HasAccountRequest struct {
	Tenant      id.ID `json:"tenant"`
	Application id.ID `json:"application"`
	Account     id.ID `json:"account"`
}

// HasAccountAnswer is the answer of API.HasAccount.
type HasAccountAnswer struct {
	Reached bool `json:"reached"`
}

// ProviderLogin is the request of API.ProviderLogin.
type ProviderLogin struct {
	Tenant      id.ID `json:"tenant"`
	Application id.ID `json:"application"`
	// Directory is the directory of the provider; zero: the first directory, in the order of
	// login, of the provider that Login names.
	Directory id.ID `json:"directory,omitzero"`
	// Login has the credentials of the user at the provider, and may name an account store.
	Login directoryapi.SocialLogin `json:"login"`
}

// ProviderLoggedIn is the account that logged in.
type ProviderLoggedIn struct {
	LoggedIn
	IsNew bool `json:"isNew"` // the login created it
}

// AskLoginContext is the request for the place of an account.
type AskLoginContext struct {
	Tenant       id.ID `json:"tenant"`
	Application  id.ID `json:"application"`
	Account      id.ID `json:"account"`
	Organization id.ID `json:"organization,omitzero"` // zero: the login named none
}

// LoginContext is the place of an account.
type LoginContext struct {
	Groups       []string           `json:"groups"` // in the order of their names
	Organization *LoginOrganization `json:"organization,omitempty"`
}

// LoginOrganization is an organization as the claim organization has it.
type LoginOrganization struct {
	ID      id.ID  `json:"id"`
	NameKey string `json:"nameKey"`
	Name    string `json:"name"`
}
