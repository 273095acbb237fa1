// Package directoryapi is the contract of the directory service (RPC): tenants, directories,
// groups, accounts and logins in api.go, social login in social.go, SAML in saml.go, hosted pages
// and sign-up in hosted.go, LDAP agents in agent.go. The service itself is services/directory.
package directoryapi

import (
	"context"
	"strings"
	"time"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/cache"
	"github.com/doorward/doorward/pkg/customdata"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/list"
	"github.com/doorward/doorward/pkg/secure"
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

// Group is a named set of accounts of one directory. The files that a new field touches are listed
// in docs/howto.md#add-a-field.
type Group struct {
	TenantID    id.ID     `json:"tenantId"`
	ID          id.ID     `json:"id"`
	DirectoryID id.ID     `json:"directoryId"`
	Name        string    `json:"name"`
	Description *string   `json:"description"`
	Status      string    `json:"status"` // Enabled or Disabled
	CreatedAt   time.Time `json:"createdAt"`
	ModifiedAt  time.Time `json:"modifiedAt"`
}

// Times returns the times of the collections below the group.
func (g Group) Times() (createdAt, modifiedAt time.Time) { return g.CreatedAt, g.ModifiedAt }

// NewGroup is the body that creates or updates a group.
type NewGroup struct {
	Name        field.Text        `json:"name,omitzero"`
	Description field.Text        `json:"description,omitzero"`
	Status      field.Text        `json:"status,omitzero"`
	CustomData  customdata.Change `json:"customData,omitzero"`
	NameKey     field.Text        `json:"nameKey,omitzero"` // sent by a client, and ignored (docs/interface/conventions.md#resources)
}

// IsCustomDataAlone reports whether a body has custom data and nothing else, which does not change
// modifiedAt of the group (docs/interface/custom-data.md#endpoints).
func (in NewGroup) IsCustomDataAlone() bool {
	return in.CustomData.Present && in == NewGroup{CustomData: in.CustomData}
}

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
	EmailAssumed            bool    `json:"emailAssumed,omitempty"`  // VERIFIED as the provider makes no statement about the email
	VerificationSealed      []byte  `json:"verificationSealed,omitempty"`
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

// Store is an account store, in which logins are looked up: a directory, or a group, which
// contains its members.
type Store struct {
	Kind string `json:"kind"` // Directories or Groups
	ID   id.ID  `json:"id"`
}

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

// CreateDirectory is the request to create a directory.
type CreateDirectory struct {
	Tenant id.ID  `json:"tenant"`
	ID     id.ID  `json:"id"`
	Name   string `json:"name"`
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

// Authenticate is a login with a password.
type Authenticate struct {
	Tenant   id.ID         `json:"tenant"`
	Stores   []Store       `json:"stores"` // in the order of login
	Login    string        `json:"login"`  // user name or email
	Password secure.Secret `json:"password"`
	// Anonymous says that the login does not come from a client with an API key. While the agent of a
	// store does not answer, such a client gets the same answer for every login that no store before
	// settles, which is apierr.Unavailable.
	Anonymous bool `json:"anonymous,omitempty"`
}

// Authenticated is the account of a login, and the account store in which the account was found.
type Authenticated struct {
	Account Account `json:"account"`
	Store   Store   `json:"store"`
}

// LinkedAccountRequest is the request of API.LinkedAccount.
type LinkedAccountRequest struct {
	Tenant  id.ID `json:"tenant"`
	Account id.ID `json:"account"` // that has authenticated
	Store   Store `json:"store"`   // default account store of the application of the login
	// ByEmail links the account to the account of the store with the same email, where both have
	// verified that email.
	ByEmail bool `json:"byEmail,omitempty"`
	// Provision creates a copy of the account in the store, and links it.
	Provision bool `json:"provision,omitempty"`
	// DryRun reports the outcome and creates nothing.
	DryRun bool `json:"dryRun,omitempty"`
}

// LinkOutcome is the outcome of account linking at a login.
type LinkOutcome string

// The outcomes.
const (
	Unchanged   LinkOutcome = "UNCHANGED"   // the account itself logs in
	Followed    LinkOutcome = "FOLLOWED"    // the linked account logs in
	Linked      LinkOutcome = "LINKED"      // a link to the account of the same email was created
	Provisioned LinkOutcome = "PROVISIONED" // a copy and a link to the copy were created
)

// LinkedAccount is the account that logs in.
type LinkedAccount struct {
	Account Account     `json:"account"` // in a dry run, a copy has no id
	Outcome LinkOutcome `json:"outcome"`
	Reason  string      `json:"reason"` // for the developer
}

// ExplainLogin is the request of API.ExplainLogin.
type ExplainLogin struct {
	Tenant id.ID   `json:"tenant"`
	Stores []Store `json:"stores"` // in the order of login
	Login  string  `json:"login"`  // user name or email
}

// ExplainedLogin is what Authenticate would do with a login.
type ExplainedLogin struct {
	Stores []NamedStore `json:"stores"` // those of the request that exist, in no order
	// Found is the account whose password would be checked, and the account store in which it was
	// found; nil where no store has the login.
	Found *Authenticated `json:"found,omitempty"`
	// Refusal is an error of Authenticate: NoSuchAccount where Found is nil, otherwise the error of
	// the login with the right password, which is WrongPassword for an account without a password.
	// It is nil where the login succeeds.
	Refusal *apierr.Error `json:"refusal,omitempty"`
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

// CreateGroup is the request to create a group.
type CreateGroup struct {
	Tenant    id.ID    `json:"tenant"`
	ID        id.ID    `json:"id"`
	Directory id.ID    `json:"directory"`
	Group     NewGroup `json:"group"`
}

// ListGroups is the request for a page of groups.
type ListGroups struct {
	Tenant id.ID      `json:"tenant"`
	Stores []Store    `json:"stores"`
	Query  list.Query `json:"query"`
}

// StoresOf are the account stores that contain an account.
type StoresOf struct {
	Stores []Store `json:"stores"`
}

// MaxAnonymousMails is the rate limit of mails: how many verification mails, and how many password
// reset mails, callers without an API key can request for an account within an hour.
const MaxAnonymousMails = 10

// RequestVerification is the request for another verification mail (resend).
type RequestVerification struct {
	Tenant      id.ID   `json:"tenant"`
	Application id.ID   `json:"application,omitzero"` // through which it is asked, for the mail
	Stores      []Store `json:"stores"`               // in the order of login
	Login       string  `json:"login"`                // user name or email
	Anonymous   bool    `json:"anonymous,omitempty"`  // the caller has no API key: MaxAnonymousMails holds
}

// RequestedMail is the answer to RequestVerification.
type RequestedMail struct {
	Sent bool `json:"sent"`
}

// MailedLink is what a mailed link leads to.
type MailedLink struct {
	Tenant      id.ID   `json:"tenant"`
	Account     Account `json:"account"`
	Application id.ID   `json:"application,omitzero"` // through which the mail was caused; zero: none, or not known
}

// EndedLink is the request of API.EndedLink.
type EndedLink struct {
	Workflow Workflow      `json:"workflow"` // Verification or Reset
	Token    secure.Secret `json:"token"`
}

// RequestReset is the request for a password reset (forgot password).
type RequestReset struct {
	Tenant      id.ID   `json:"tenant"`
	Application id.ID   `json:"application,omitzero"` // through which it is asked, for the mail
	Stores      []Store `json:"stores"`               // in the order of login
	Login       string  `json:"login"`                // user name or email
	Anonymous   bool    `json:"anonymous,omitempty"`  // the caller has no API key: MaxAnonymousMails holds
}

// VerifyEmail is the use of an email verification token.
type VerifyEmail struct {
	Tenant id.ID         `json:"tenant,omitzero"` // zero for a mailed link: looked up by the token
	Token  secure.Secret `json:"token"`
}

// ResetToken is the token of a password reset.
type ResetToken struct {
	Tenant id.ID         `json:"tenant,omitzero"` // zero for a mailed link: the tenant in the token
	Token  secure.Secret `json:"token"`           // a JWT, its dots percent-encoded or not (docs/interface/accounts.md#password-reset)
}

// ResetPassword is the use of a reset token to set a new password.
type ResetPassword struct {
	ResetToken
	Password field.Text `json:"password,omitzero"`
}

// PasswordReset is a pending password reset: the right to set the password of an account once.
type PasswordReset struct {
	Token       secure.Secret `json:"token"` // a JWT
	Account     Account       `json:"account"`
	Application id.ID         `json:"application,omitzero"` // through which it was requested
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

// Workflow is a kind of mail to an account.
type Workflow string

// The workflows (docs/interface/mail.md#templates).
const (
	Verification        Workflow = "verification"
	VerificationSuccess Workflow = "verificationSuccess"
	Welcome             Workflow = "welcome"
	Reset               Workflow = "reset"
	ResetSuccess        Workflow = "resetSuccess"
	// ExistingAccount is the mail to the owner of an email with which somebody tried to register.
	ExistingAccount Workflow = "existingAccount"
	// FactorAdded and FactorRemoved are the mails of a change of the second factors. They have no
	// template, and are sent in every directory, also a mirror.
	FactorAdded   Workflow = "factorAdded"
	FactorRemoved Workflow = "factorRemoved"
	// SigningUp is the mail of a sign-up or an invitation, which has no directory.
	SigningUp Workflow = "signUp"
	// Invitation is the workflow of the template of an invitation.
	Invitation Workflow = "invitation"
)

// Page is the path of the deployment's page to which the link of the workflow's mail leads, unless
// its template names another URL. It is empty for a workflow whose mail has no link
// (docs/interface/mail.md#links).
func (w Workflow) Page() string {
	switch w {
	case Verification:
		return "/emailVerificationTokens"
	case Reset, ExistingAccount:
		return "/passwordReset"
	case SigningUp, Invitation:
		return "/register"
	}
	return ""
}

// MailOf is the request of API.Mail.
type MailOf struct {
	Tenant   id.ID    `json:"tenant"`
	Account  id.ID    `json:"account"`
	Workflow Workflow `json:"workflow"`
}

// Mail is a template and the values of its macros.
type Mail struct {
	Template  EmailTemplate `json:"template"`
	Account   Account       `json:"account"`
	Directory Directory     `json:"directory"`
	// AccountData and DirectoryData are the values, as texts, of those keys of their customData
	// that macros of the template name.
	AccountData   map[string]string `json:"accountData,omitempty"`
	DirectoryData map[string]string `json:"directoryData,omitempty"`
	// ResetTokenTTL is the lifetime of a reset token of the directory, in hours; set for the
	// workflow Reset only.
	ResetTokenTTL int `json:"resetTokenTtl,omitempty"`
}

// EmailTemplate is the text of a workflow's mail.
type EmailTemplate struct {
	TenantID         id.ID    `json:"tenantId"`
	ID               id.ID    `json:"id"`
	DirectoryID      id.ID    `json:"directoryId"`
	Workflow         Workflow `json:"workflow"`
	Name             string   `json:"name"`
	Description      *string  `json:"description"`
	FromName         *string  `json:"fromName"`         // nil: the deployment's
	FromEmailAddress *string  `json:"fromEmailAddress"` // nil: the deployment's
	Subject          string   `json:"subject"`
	MimeType         string   `json:"mimeType"` // text/plain, text/html or multipart/alternative
	TextBody         string   `json:"textBody"`
	HTMLBody         string   `json:"htmlBody" db:"html_body"`
	LinkBaseURL      *string  `json:"linkBaseUrl" db:"link_base_url"` // nil: no link, or the deployment's page
	// Unchanged says that no tenant has changed the subject, the bodies or the MIME type: the mail is
	// that of the deployment (pkg/mailtext), in the user's language.
	Unchanged  bool      `json:"unchanged,omitempty"`
	CreatedAt  time.Time `json:"createdAt"`
	ModifiedAt time.Time `json:"modifiedAt"`
}
