// Package directoryapi is the contract of the directory service: tenants,
// directories, accounts, and logins.
package directoryapi

import (
	"context"
	"strings"
	"time"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/changefeed"
	"github.com/doorward/doorward/pkg/customdata"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/list"
	"github.com/doorward/doorward/pkg/secure"
)

// API is what peers ask of the directory service.
type API interface {
	// SignUp makes a tenant with its administrators directory and its owner's
	// account. A repeated call returns what the first made.
	SignUp(context.Context, SignUp) (SignedUp, error)

	// Tenant returns the tenant that is both members of the reference, or
	// apierr.NotFound.
	Tenant(context.Context, Ref) (Tenant, error)

	// CreateDirectory makes a cloud directory with its policies. It returns
	// apierr.Exists when the name is taken in the tenant.
	CreateDirectory(context.Context, CreateDirectory) (Directory, error)

	// Directory returns a directory, or apierr.NotFound.
	Directory(context.Context, Ref) (Directory, error)

	// DeleteDirectory removes a directory with all that it holds, or returns
	// apierr.NotFound. It undoes CreateDirectory.
	DeleteDirectory(context.Context, Ref) (Empty, error)

	// CreateAccount makes an account in a directory. It returns the
	// validation errors of the interface, apierr.Exists, apierr.NotFound for
	// the directory, and apierr.AccountStoreDisabled for a disabled one.
	CreateAccount(context.Context, CreateAccount) (Account, error)

	// Account returns an account, or apierr.NotFound.
	Account(context.Context, Ref) (Account, error)

	// ListAccounts returns a page of the accounts of all the stores, each once.
	ListAccounts(context.Context, ListAccounts) (list.Page[Account], error)

	// CreateGroup makes a group in a directory. It returns the validation
	// errors of the interface, apierr.Exists, apierr.MirrorReadOnly, and
	// apierr.NotFound for the directory.
	CreateGroup(context.Context, CreateGroup) (Group, error)

	// Group returns a group, or apierr.NotFound.
	Group(context.Context, Ref) (Group, error)

	// ListGroups returns a page of the groups of all the stores, each once: those
	// of a directory, and a group that is a store itself.
	ListGroups(context.Context, ListGroups) (list.Page[Group], error)

	// StoresOf returns the stores that hold an account: its directory and its
	// groups. It returns apierr.NotFound for the account.
	StoresOf(context.Context, Ref) (StoresOf, error)

	// Authenticate checks a password. The first of the stores that holds an account of that
	// login decides. Accounts without a password are considered last. The same work is done
	// when there is no such account. It returns apierr.NoSuchAccount, WrongPassword,
	// AccountDisabled, AccountUnverified, AccountLocked, GroupDisabled, DirectoryDisabled, or
	// Unavailable when too many passwords are being checked.
	Authenticate(context.Context, Authenticate) (Authenticated, error)

	// LinkedAccount returns the account that logs in when an account has proved itself outside
	// of the default account store: that account, or the one of the store that it is linked
	// to, where there is one or the request lets it be made
	// (docs/interface/account-linking.md#outcome-at-login). One of several parallel calls
	// makes it, and all return it. It returns apierr.NoSuchAccount for an account that is
	// gone, and AccountDisabled, AccountUnverified, GroupDisabled or DirectoryDisabled when
	// the one that would log in may not; a call that is refused makes nothing.
	LinkedAccount(context.Context, LinkAccount) (LinkedAccount, error)

	// ExplainLogin reports what Authenticate would do with a login of any
	// password. It checks none and changes nothing.
	ExplainLogin(context.Context, ExplainLogin) (ExplainedLogin, error)

	// RequestVerification makes a new verification token for the account of a login and sends
	// its mail, unless its email is verified already or MaxAnonymousMails is reached, which is
	// no error. It returns apierr.NoSuchResource for an unknown login and VerificationDisabled
	// where the directory's workflow is off.
	RequestVerification(context.Context, RequestVerification) (Empty, error)

	// VerifyEmail consumes an email verification token. One of any number of parallel attempts
	// succeeds; an unknown, used or expired token is apierr.NotFound.
	VerifyEmail(context.Context, VerifyEmail) (Account, error)

	// Verification returns the account whose email a token would verify, and does not consume
	// it; an unknown, used or expired token is apierr.NotFound.
	Verification(context.Context, VerifyEmail) (Account, error)

	// RequestReset makes a password reset token for the account of a login and sends its mail
	// where the directory's workflow is on. Where MaxAnonymousMails is reached it makes
	// neither: the Token is empty, which is no error. It returns apierr.NoSuchResource for an
	// unknown login.
	RequestReset(context.Context, RequestReset) (PasswordReset, error)

	// Reset returns the reset that a token stands for, or apierr.NotFound for one that is
	// unknown, used or expired.
	Reset(context.Context, ResetToken) (PasswordReset, error)

	// ResetPassword sets the password of the account that a token stands for, and consumes all
	// open reset tokens of the account. One of any number of parallel attempts succeeds. It
	// returns apierr.NotFound as Reset does, and the errors of a new password, which consume
	// nothing.
	ResetPassword(context.Context, ResetPassword) (PasswordReset, error)

	// CheckAccess reports whether an account may act through one of the stores
	// now. It returns apierr.TokenAccountDisabled for an account that is gone
	// or not enabled, TokenStoreDisabled when only a disabled store holds it,
	// and TokenAccountUnreachable when none does.
	CheckAccess(context.Context, CheckAccess) (Access, error)

	// AccessChanges returns which accounts and directories have changed since a
	// position in a way that may end the access of an account.
	AccessChanges(context.Context, changefeed.Position) (changefeed.Page, error)

	// Mail returns what a mail of a workflow to an account is made of. It returns
	// apierr.NotFound when the account is gone, the workflow is off, or the
	// directory is a mirror.
	Mail(context.Context, MailOf) (Mail, error)

	// AuthenticateAgent checks a key of an agent. It returns apierr.Unauthorized.
	AuthenticateAgent(context.Context, AuthenticateAgent) (AgentKey, error)

	// Owner returns the account of the owner of a tenant, which is both members of
	// the reference, or apierr.NotFound.
	Owner(context.Context, Ref) (Account, error)

	// Profile returns an account with what surrounds it, or apierr.NotFound.
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
)

// Empty is the result of a method that returns none.
type Empty struct{}

// Ref names a resource of a tenant.
type Ref = id.Ref

// Tenant holds the data of one customer, which no other can see.
type Tenant struct {
	ID         id.ID     `json:"id" db:"tenant_id"`
	Key        string    `json:"key"`
	Name       string    `json:"name"`
	CreatedAt  time.Time `json:"createdAt"`
	ModifiedAt time.Time `json:"modifiedAt"`
}

// Times returns the times of the collections below the tenant.
func (t Tenant) Times() (createdAt, modifiedAt time.Time) { return t.CreatedAt, t.ModifiedAt }

// The kinds of account store, as they stand in an href.
const (
	Directories = "directories"
	Groups      = "groups"
)

// Native is the providerId of cloud directories. Another belongs to a mirror of
// a directory elsewhere, which is read-only.
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

// Mirror reports whether the directory is a read-only copy of one elsewhere.
func (d Directory) Mirror() bool { return d.ProviderID != Native }

// Group is a named set of accounts of one directory. What a new field of it touches:
// docs/howto.md#add-a-field.
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

// NewGroup is the body that creates a group.
type NewGroup struct {
	Name        field.Text        `json:"name,omitzero"`
	Description field.Text        `json:"description,omitzero"`
	Status      field.Text        `json:"status,omitzero"`
	CustomData  customdata.Change `json:"customData,omitzero"`
	NameKey     field.Text        `json:"nameKey,omitzero"` // sent by a client, and ignored (docs/interface/conventions.md#resources)
}

// IsCustomDataAlone reports whether a body names custom data and nothing else,
// which does not change its owner (docs/interface/custom-data.md#endpoints).
func (in NewGroup) IsCustomDataAlone() bool {
	return in.CustomData.Present && in == NewGroup{CustomData: in.CustomData}
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
	Status                  string     `json:"status"`                  // Enabled, Disabled, Unverified or Locked
	EmailVerificationStatus string     `json:"emailVerificationStatus"` // Unknown, Unverified or Verified
	EmailAssumed            bool       `json:"emailAssumed,omitempty"`  // VERIFIED by default: the provider makes no statement about the email
	VerificationSealed      []byte     `json:"verificationSealed,omitempty"`
	PasswordModifiedAt      *time.Time `json:"passwordModifiedAt"`
	Owner                   bool       `json:"owner"` // owner of the tenant
	CreatedAt               time.Time  `json:"createdAt"`
	ModifiedAt              time.Time  `json:"modifiedAt"`

	// VerificationToken is what VerificationSealed holds, where it is shown.
	VerificationToken secure.Secret `json:"verificationToken,omitempty" db:"-"`
}

// Times returns the times of the collections below the account.
func (a Account) Times() (createdAt, modifiedAt time.Time) { return a.CreatedAt, a.ModifiedAt }

// FullName joins the parts of the name that are there.
func (a Account) FullName() string {
	var parts []string
	for _, part := range []*string{a.GivenName, a.MiddleName, a.Surname} {
		if part != nil && strings.TrimSpace(*part) != "" {
			parts = append(parts, strings.TrimSpace(*part))
		}
	}
	return strings.Join(parts, " ")
}

// NewAccount is the body that creates an account.
type NewAccount struct {
	Username   field.Text        `json:"username,omitzero"`
	Email      field.Text        `json:"email,omitzero"`
	Password   field.Text        `json:"password,omitzero"`
	GivenName  field.Text        `json:"givenName,omitzero"`
	MiddleName field.Text        `json:"middleName,omitzero"`
	Surname    field.Text        `json:"surname,omitzero"`
	Status     field.Text        `json:"status,omitzero"`
	CustomData customdata.Change `json:"customData,omitzero"`
	// EmailVerificationStatus is what an administrator says of the email, never
	// the user who registers.
	EmailVerificationStatus field.Text `json:"emailVerificationStatus,omitzero"`
}

// Store is a place where accounts are looked for: a directory, or a group,
// which holds its members.
type Store struct {
	Kind string `json:"kind"` // Directories or Groups
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
	// Pending takes the owner's email, names and password from the sign-up of these
	// ids, whose mail has verified the email.
	Pending bool `json:"pending,omitempty"`
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
	Group       id.ID      `json:"group,omitzero"`       // of the directory, which it joins
	Application id.ID      `json:"application,omitzero"` // through which it is created, for its mails
	Account     NewAccount `json:"account"`
	// HashedPassword says that the password is a hash in the modular crypt
	// format (docs/interface/accounts.md#password-hashes).
	HashedPassword bool `json:"hashedPassword,omitempty"`
	// Workflow requests the directory's registration mails.
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

// Authenticated is the account of a login, and the store that decided.
type Authenticated struct {
	Account Account `json:"account"`
	Store   Store   `json:"store"`
}

// LinkAccount asks which account logs in.
type LinkAccount struct {
	Tenant  id.ID `json:"tenant"`
	Account id.ID `json:"account"` // that has proved itself
	Store   Store `json:"store"`   // the default account store of where it logs in
	// ByEmail links the account to that of the same email, where both are
	// verified.
	ByEmail bool `json:"byEmail,omitempty"`
	// Provision makes a copy of the account in the store, and links it.
	Provision bool `json:"provision,omitempty"`
	// DryRun reports what would be done, and makes nothing.
	DryRun bool `json:"dryRun,omitempty"`
}

// LinkOutcome is what account links do to a login.
type LinkOutcome string

// The outcomes.
const (
	Unchanged   LinkOutcome = "UNCHANGED"   // the account itself logs in
	Followed    LinkOutcome = "FOLLOWED"    // a link leads to the account that logs in
	Linked      LinkOutcome = "LINKED"      // a link was made to the account of the same email
	Provisioned LinkOutcome = "PROVISIONED" // a copy was made, and a link to it
)

// LinkedAccount is the account that logs in.
type LinkedAccount struct {
	Account Account     `json:"account"` // a copy that a dry run did not make has no id
	Outcome LinkOutcome `json:"outcome"`
	Reason  string      `json:"reason"` // for the developer
}

// ExplainLogin asks what a login would do.
type ExplainLogin struct {
	Tenant id.ID   `json:"tenant"`
	Stores []Store `json:"stores"` // in the order of login
	Login  string  `json:"login"`  // user name or email
}

// ExplainedLogin is what a login would do.
type ExplainedLogin struct {
	Stores []NamedStore `json:"stores"` // those that are there, in no order
	// Found is the account whose password would be compared, and the store that
	// decides; nil when none of the stores has the login.
	Found *Authenticated `json:"found,omitempty"`
	// Refusal is one of those of Authenticate: NoSuchAccount when Found is nil,
	// otherwise what the login fails with though the password is right, which is
	// WrongPassword for an account that has none. It is nil when the account is
	// let in.
	Refusal *apierr.Error `json:"refusal,omitempty"`
}

// NamedStore is an account store with what a person knows it by.
type NamedStore struct {
	Store
	Name        string `json:"name"`
	Status      string `json:"status"`      // Enabled or Disabled
	DirectoryID id.ID  `json:"directoryId"` // that it is, or is in
	ProviderID  string `json:"providerId"`  // of the directory
	Directory   string `json:"directory"`   // name of that
}

// CreateGroup asks for a group.
type CreateGroup struct {
	Tenant    id.ID    `json:"tenant"`
	ID        id.ID    `json:"id"`
	Directory id.ID    `json:"directory"`
	Group     NewGroup `json:"group"`
}

// ListGroups asks for a page.
type ListGroups struct {
	Tenant id.ID      `json:"tenant"`
	Stores []Store    `json:"stores"`
	Query  list.Query `json:"query"`
}

// StoresOf are the stores that hold an account.
type StoresOf struct {
	Stores []Store `json:"stores"`
}

// MaxAnonymousMails is how many verification mails, and how many password reset
// mails, go to an account within an hour for callers without an API key.
const MaxAnonymousMails = 10

// RequestVerification asks for another verification mail.
type RequestVerification struct {
	Tenant      id.ID   `json:"tenant"`
	Application id.ID   `json:"application,omitzero"` // through which it is asked, for the mail
	Stores      []Store `json:"stores"`               // in the order of login
	Login       string  `json:"login"`                // user name or email
	Anonymous   bool    `json:"anonymous,omitempty"`  // the caller has no API key: MaxAnonymousMails holds
}

// RequestReset asks for a password reset.
type RequestReset struct {
	Tenant      id.ID   `json:"tenant"`
	Application id.ID   `json:"application,omitzero"` // through which it is asked, for the mail
	Stores      []Store `json:"stores"`               // in the order of login
	Login       string  `json:"login"`                // user name or email
	Anonymous   bool    `json:"anonymous,omitempty"`  // the caller has no API key: MaxAnonymousMails holds
}

// VerifyEmail proves that an email belongs to its account.
type VerifyEmail struct {
	Tenant id.ID         `json:"tenant,omitzero"` // zero: that of the token, for a mailed link
	Token  secure.Secret `json:"token"`
}

// ResetToken names a password reset.
type ResetToken struct {
	Tenant id.ID         `json:"tenant,omitzero"` // zero: the one that the token names, for a mailed link
	Token  secure.Secret `json:"token"`           // a JWT, its dots percent-encoded or not (docs/interface/accounts.md#password-reset)
}

// ResetPassword sets a new password.
type ResetPassword struct {
	ResetToken
	Password field.Text `json:"password"`
}

// PasswordReset is the right to set an account's password once.
type PasswordReset struct {
	Token       secure.Secret `json:"token"` // a JWT
	Account     Account       `json:"account"`
	Application id.ID         `json:"application,omitzero"` // through which it was asked for
}

// CheckAccess is the request of API.CheckAccess.
type CheckAccess struct {
	Tenant  id.ID   `json:"tenant"`
	Account id.ID   `json:"account"`
	Stores  []Store `json:"stores"`
	// Brief asks for the members TenantID, ID, DirectoryID, Status, CreatedAt and
	// PasswordModifiedAt of the account alone, which costs less.
	Brief bool `json:"brief,omitempty"`
	// Recent, with Brief, takes the account as it was at most 50 ms ago, which costs no
	// query where an account store is the account's directory.
	Recent bool `json:"recent,omitempty"`
}

// Access is an account that may act.
type Access struct {
	Account
	// Direct says that an account store is the directory of the account. It may act for
	// as long as AccessChanges reports neither.
	Direct bool `json:"direct,omitempty"`
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
	// SigningUp is the mail of a sign-up or an invitation, which has no directory.
	SigningUp Workflow = "signUp"
)

// Page is the path of the deployment's own page that the link of the workflow's
// mail leads to, unless its template names another. It is empty for a workflow
// whose mail has no link (docs/interface/mail.md#links).
func (w Workflow) Page() string {
	switch w {
	case Verification:
		return "/emailVerificationTokens"
	case Reset:
		return "/passwordReset"
	case SigningUp:
		return "/register"
	}
	return ""
}

// MailOf asks for the parts of a mail.
type MailOf struct {
	Tenant   id.ID    `json:"tenant"`
	Account  id.ID    `json:"account"`
	Workflow Workflow `json:"workflow"`
}

// Mail is a template and the values of its placeholders.
type Mail struct {
	Template  EmailTemplate `json:"template"`
	Account   Account       `json:"account"`
	Directory Directory     `json:"directory"`
	// AccountData and DirectoryData are the values of those keys of their
	// customData that macros of the template name, as they stand in a text.
	AccountData   map[string]string `json:"accountData,omitempty"`
	DirectoryData map[string]string `json:"directoryData,omitempty"`
	// ResetTokenTTL is how long a reset token of the directory is good, in hours;
	// of the workflow Reset alone.
	ResetTokenTTL int `json:"resetTokenTtl,omitempty"`
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
