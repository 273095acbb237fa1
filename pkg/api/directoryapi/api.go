// Package directoryapi is the contract of the directory service (RPC): tenants, directories,
// groups, accounts and logins in api.go, social login in social.go, SAML in saml.go, hosted pages
// and sign-up in hosted.go, LDAP agents in agent.go. The service itself is services/directory.
package directoryapi

import (
	"context"

	"github.com/doorward/doorward/pkg/cache"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/list"
)

//go:generate go run ../internal/generate directory Contract

// Contract has all methods of the directory service that other services call.
type Contract interface {
	API
	Hosted
	Operator
}

// API is what other services ask of the directory service.
type API interface {
	// SignUp creates a tenant with its administrators directory and its owner's account. A repeated
	// call with the same ids returns what the first created.
	SignUp(context.Context, SignUp) (SignedUp, error)

	// Tenant returns a tenant, whose id is both members of the reference, or apierr.NotFound.
	Tenant(context.Context, Ref) (Tenant, error)

	// CreateDirectory creates a cloud directory with its policies. It returns apierr.Exists where the
	// name is not unique in the tenant.
	CreateDirectory(context.Context, CreateDirectory) (Directory, error)

	// Directory returns a directory, or apierr.NotFound.
	Directory(context.Context, Ref) (Directory, error)

	// DeleteDirectory deletes a directory with its accounts, groups and policies, or returns
	// apierr.NotFound. It undoes CreateDirectory.
	DeleteDirectory(context.Context, Ref) (Empty, error)

	// CreateAccount creates an account in a directory. It returns the validation errors of the HTTP
	// interface, apierr.Exists for an email or user name that is not unique, apierr.NotFound for the
	// directory, and apierr.AccountStoreDisabled for a disabled one.
	CreateAccount(context.Context, CreateAccount) (Account, error)

	// Account returns an account, or apierr.NotFound.
	Account(context.Context, Ref) (Account, error)

	// ListAccounts returns a page of the accounts of all the account stores, each account once.
	ListAccounts(context.Context, ListAccounts) (list.Page[Account], error)

	// CreateGroup creates a group in a directory. It returns the validation errors of the HTTP
	// interface, apierr.Exists, apierr.MirrorReadOnly, and apierr.NotFound for the directory.
	CreateGroup(context.Context, CreateGroup) (Group, error)

	// Group returns a group, or apierr.NotFound.
	Group(context.Context, Ref) (Group, error)

	// ListGroups returns a page of the groups of all the account stores, each once: the groups of a
	// directory, and a group that is a store itself.
	ListGroups(context.Context, ListGroups) (list.Page[Group], error)

	// StoresOf returns the account stores that contain an account: its directory and its groups. It
	// returns apierr.NotFound for the account.
	StoresOf(context.Context, Ref) (StoresOf, error)

	// Authenticate checks the password of a login. The first of the account stores that contains an
	// account of that login decides; accounts without a password are considered last. It takes the
	// same time where there is no such account. It returns apierr.NoSuchAccount, WrongPassword,
	// AccountDisabled, AccountUnverified, AccountLocked, GroupDisabled, DirectoryDisabled, OutsideDomains
	// for an account of a mirror outside the domains that the mirror is bound to, or Unavailable when too
	// many passwords are being checked.
	Authenticate(context.Context, Authenticate) (Authenticated, error)

	// LinkedAccount returns the account that logs in when an account has authenticated outside of the
	// default account store: that account, or the account of the store that it is linked to. Where the
	// request allows it, the link and a copy of the account are created
	// (docs/interface/account-linking.md#outcome-at-login). Of concurrent calls one creates them, and
	// all return the same account. It returns apierr.NoSuchAccount for an account that was deleted,
	// and AccountDisabled, AccountUnverified, GroupDisabled or DirectoryDisabled where the account
	// that would log in may not; then nothing is created.
	LinkedAccount(context.Context, LinkedAccountRequest) (LinkedAccount, error)

	// ExplainLogin reports what Authenticate would do with a login, whatever the password. It checks
	// no password and changes nothing.
	ExplainLogin(context.Context, ExplainLogin) (ExplainedLogin, error)

	// RequestVerification sends the verification token of the account of a login by mail, with a new
	// lifetime, and creates one where the last was used or has ended, unless its email is verified already or
	// MaxAnonymousMails is exceeded, which are no errors; the answer says whether it sends one. It returns
	// apierr.NoSuchResource for an unknown login, and VerificationDisabled where
	// the directory's workflow is disabled.
	RequestVerification(context.Context, RequestVerification) (RequestedMail, error)

	// VerifyEmail consumes an email verification token. Of concurrent attempts one succeeds; an
	// unknown, used or expired token is apierr.NotFound.
	VerifyEmail(context.Context, VerifyEmail) (Account, error)

	// Verification returns the account whose email a token would verify, and does not consume the
	// token; an unknown, used or expired token is apierr.NotFound.
	Verification(context.Context, VerifyEmail) (MailedLink, error)

	// EndedLink returns what is known of a mailed link whose token was used or has expired. Its account is
	// zero where only the tenant is known. It returns apierr.NotFound for a token that never was.
	EndedLink(context.Context, EndedLink) (MailedLink, error)

	// RequestReset creates a password reset token for the account of a login, and sends its mail where
	// the directory's workflow is enabled. Where MaxAnonymousMails is exceeded it does neither and the
	// Token is empty, which is no error. It returns apierr.NoSuchResource for an unknown login.
	RequestReset(context.Context, RequestReset) (PasswordReset, error)

	// RemindOfAccount answers a registration with the email of an account. An UNVERIFIED one gets its
	// verification mail again, another one a mail that says that it exists, with the link to a new
	// password, where the directory verifies emails. MaxAnonymousMails holds. It returns
	// apierr.NoSuchResource for an unknown login.
	RemindOfAccount(context.Context, RequestReset) (Empty, error)

	// Reset returns the reset of a token, or apierr.NotFound for a token that is unknown, used or
	// expired.
	Reset(context.Context, ResetToken) (PasswordReset, error)

	// ResetPassword sets the password of the account of a token, and invalidates all reset tokens of
	// the account. Of concurrent attempts one succeeds. It returns apierr.NotFound as Reset does, and
	// the errors of a new password, which consume no token.
	ResetPassword(context.Context, ResetPassword) (PasswordReset, error)

	// CheckAccess reports whether an account may act now, through one of the account stores. It
	// returns apierr.TokenAccountDisabled for an account that was deleted or is not enabled,
	// TokenStoreDisabled where only disabled stores contain the account, and TokenAccountUnreachable
	// where no store contains it. The answer is as of at most 50 ms ago.
	CheckAccess(context.Context, CheckAccess) (Access, error)

	// AccessChanges returns the accounts, groups, directories and agents that have changed since a position
	// in a way that may end or begin the access of an account or an agent (cache.Answers).
	AccessChanges(context.Context, cache.Position) (cache.Page, error)

	// Mail returns what a mail of a workflow to an account is made of. It returns apierr.NotFound when
	// the account was deleted, the workflow is disabled, or the directory is a mirror.
	Mail(context.Context, MailOf) (Mail, error)

	// AuthenticateAgent validates a key of an LDAP agent. It returns apierr.Unauthorized.
	AuthenticateAgent(context.Context, AuthenticateAgent) (AgentKey, error)

	// DeletedTenants returns the tenants whose rows each service deletes (package tenantpurge).
	DeletedTenants(context.Context, Empty) (DeletedTenants, error)

	// Owner returns the account of the owner of a tenant, whose id is both members of the reference,
	// or apierr.NotFound.
	Owner(context.Context, Ref) (Account, error)

	// Profile returns an account with the related resources that the request asks for, or
	// apierr.NotFound.
	Profile(context.Context, ProfileRequest) (Profile, error)

	Providers
}

// The values of status fields.
const (
	Enabled    = "ENABLED"
	Disabled   = "DISABLED"
	Unverified = "UNVERIFIED"
	Verified   = "VERIFIED"
	Unknown    = "UNKNOWN"
	Locked     = "LOCKED"
	Suspended  = "SUSPENDED" // of a tenant
	Deleting   = "DELETING"  // of a tenant: suspended, and all of it goes after its grace
	Deleted    = "DELETED"   // of a tenant whose grace has ended: its row keeps its key and its id, all others go
)

// Empty is the result of a method without a result.
type Empty struct{}

// Ref is the id of a resource and that of its tenant.
type Ref = id.Ref
