package events

import (
	"time"

	"github.com/doorward/doorward/pkg/id"
)

// AccountRegistered says that an account was created with the registration workflow. The
// directory's policies decide which mail is sent, if any.
type AccountRegistered struct {
	Tenant      id.ID  `json:"tenant"`
	Account     id.ID  `json:"account"`
	Directory   id.ID  `json:"directory"`
	Application id.ID  `json:"application,omitzero"` // through which it was created, if any
	Token       []byte `json:"token,omitempty"`      // sealed verification token; absent when none was made
}

// About names the account.
func (e AccountRegistered) About() (tenant, subject id.ID) { return e.Tenant, e.Account }

// AccountVerified says that the email of an account was verified.
type AccountVerified struct {
	Tenant    id.ID `json:"tenant"`
	Account   id.ID `json:"account"`
	Directory id.ID `json:"directory"`
}

// About names the account.
func (e AccountVerified) About() (tenant, subject id.ID) { return e.Tenant, e.Account }

// VerificationRequested says that an account is to get another mail to verify its
// email.
type VerificationRequested struct {
	Tenant      id.ID  `json:"tenant"`
	Account     id.ID  `json:"account"`
	Directory   id.ID  `json:"directory"`
	Application id.ID  `json:"application,omitzero"` // through which it was requested, if any
	Token       []byte `json:"token"`                // sealed verification token
}

// About names the account.
func (e VerificationRequested) About() (tenant, subject id.ID) { return e.Tenant, e.Account }

// PasswordResetRequested says that an account may set a new password and is to
// get the mail with the link.
type PasswordResetRequested struct {
	Tenant      id.ID  `json:"tenant"`
	Account     id.ID  `json:"account"`
	Directory   id.ID  `json:"directory"`
	Application id.ID  `json:"application,omitzero"` // through which it was requested, if any
	Token       []byte `json:"token"`                // sealed reset token
	// Existing says that somebody tried to register with the email of the account: the mail says so.
	Existing bool `json:"existing,omitempty"`
}

// About names the account.
func (e PasswordResetRequested) About() (tenant, subject id.ID) { return e.Tenant, e.Account }

// PasswordReset says that a new password was set with a reset token.
type PasswordReset struct {
	Tenant      id.ID `json:"tenant"`
	Account     id.ID `json:"account"`
	Directory   id.ID `json:"directory"`
	Application id.ID `json:"application,omitzero"` // through which it was requested, if any
}

// About names the account.
func (e PasswordReset) About() (tenant, subject id.ID) { return e.Tenant, e.Account }

// SignUpRequested says that a sign-up or an invitation is to get the mail with its
// link. Its tenant and its account may not exist yet.
type SignUpRequested struct {
	Tenant  id.ID  `json:"tenant"`
	Account id.ID  `json:"account"`
	Token   []byte `json:"token"` // sealed
}

// About names the account.
func (e SignUpRequested) About() (tenant, subject id.ID) { return e.Tenant, e.Account }

// AdminKeyCreated says that an operator has created an API key of an administrator by a command, which the owner
// of the tenant is to hear of by mail.
type AdminKeyCreated struct {
	Tenant   id.ID     `json:"tenant"`
	Account  id.ID     `json:"account"` // the owner, whose key it is
	Key      string    `json:"key"`     // its id
	At       time.Time `json:"at"`
	Operator string    `json:"operator"`
	Reason   *string   `json:"reason"`
}

// About names the account.
func (e AdminKeyCreated) About() (tenant, subject id.ID) { return e.Tenant, e.Account }

// GroupDeleted says that a group was deleted. Its members were not deleted.
type GroupDeleted struct {
	Tenant    id.ID `json:"tenant"`
	Group     id.ID `json:"group"`
	Directory id.ID `json:"directory"`
}

// About names the group.
func (e GroupDeleted) About() (tenant, subject id.ID) { return e.Tenant, e.Group }

// AccountDeleted says that an account was deleted; other services delete their data of it.
type AccountDeleted struct {
	Tenant  id.ID `json:"tenant"`
	Account id.ID `json:"account"`
}

// About names the account.
func (e AccountDeleted) About() (tenant, subject id.ID) { return e.Tenant, e.Account }

// DirectoryDeleted says that a directory, its groups and its accounts were deleted.
type DirectoryDeleted struct {
	Tenant    id.ID `json:"tenant"`
	Directory id.ID `json:"directory"`
}

// About names the directory.
func (e DirectoryDeleted) About() (tenant, subject id.ID) { return e.Tenant, e.Directory }

// AccountsDeleted says that accounts of a deleted directory, or absent ones of a mirror, were deleted.
// It follows DirectoryDeleted, several times if necessary, until all accounts were named.
type AccountsDeleted struct {
	Tenant    id.ID   `json:"tenant"`
	Directory id.ID   `json:"directory"`
	Accounts  []id.ID `json:"accounts"`
}

// About names the directory.
func (e AccountsDeleted) About() (tenant, subject id.ID) { return e.Tenant, e.Directory }

// ApplicationDeleted says that an application was deleted; its tokens and policies are deleted too.
type ApplicationDeleted struct {
	Tenant      id.ID `json:"tenant"`
	Application id.ID `json:"application"`
}

// About names the application.
func (e ApplicationDeleted) About() (tenant, subject id.ID) { return e.Tenant, e.Application }

// FactorChanged says that a second factor was added to an account, or removed from it, which its owner
// is to hear of by mail.
type FactorChanged struct {
	Tenant  id.ID  `json:"tenant"`
	Account id.ID  `json:"account"`
	Type    string `json:"type"` // SMS or google-authenticator
	Removed bool   `json:"removed,omitempty"`
}

// About names the account.
func (e FactorChanged) About() (tenant, subject id.ID) { return e.Tenant, e.Account }

// ChallengeCreated says that a code is to be sent to a phone. Message has the placeholder ${code}
// for the code; after ExpiresAt the message is not sent.
type ChallengeCreated struct {
	Tenant    id.ID     `json:"tenant"`
	Account   id.ID     `json:"account"`
	Challenge id.ID     `json:"challenge"`
	Number    string    `json:"number"` // E.164
	Message   string    `json:"message"`
	Code      []byte    `json:"code"` // sealed for CodePurpose
	ExpiresAt time.Time `json:"expiresAt"`
}

// About names the account.
func (e ChallengeCreated) About() (tenant, subject id.ID) { return e.Tenant, e.Account }

// SMSStatus is the state of a text message.
type SMSStatus string

// The states of a text message, in their order.
const (
	SMSAccepted   SMSStatus = "ACCEPTED"   // by the provider, or its answer was lost
	SMSDelivered  SMSStatus = "DELIVERED"  // to the phone
	SMSFailed     SMSStatus = "FAILED"     // the provider could not deliver it, or refused it
	SMSUnsendable SMSStatus = "UNSENDABLE" // it could not be sent, for a reason of this deployment
)

// TextReported says that the text message of a challenge has reached a state.
type TextReported struct {
	Tenant    id.ID     `json:"tenant"`
	Account   id.ID     `json:"account"`
	Challenge id.ID     `json:"challenge"`
	Status    SMSStatus `json:"status"`
}

// About names the account.
func (e TextReported) About() (tenant, subject id.ID) { return e.Tenant, e.Account }

// PasswordChange is how the password of an account was changed.
type PasswordChange string

// The ways to change a password.
const (
	PasswordByReset         PasswordChange = "RESET"         // its owner used a reset token
	PasswordByAdministrator PasswordChange = "ADMINISTRATOR" // an API key of an administrator set it
)

// PasswordChanged says that an account has a new password, so that tokens and sessions that were
// issued before can be revoked.
type PasswordChanged struct {
	Tenant  id.ID          `json:"tenant"`
	Account id.ID          `json:"account"`
	By      PasswordChange `json:"by"`
	// ModifiedAt is the new passwordModifiedAt of the account; zero: an event of the release before.
	ModifiedAt time.Time `json:"modifiedAt,omitzero"`
}

// About names the account.
func (e PasswordChanged) About() (tenant, subject id.ID) { return e.Tenant, e.Account }

// AccountDisabled says that an enabled account was disabled: its sessions of single sign-on end, and the
// tokens that were made in them. It keeps its other tokens, which are refused at their next use
// (services/directory/access.go).
type AccountDisabled struct {
	Tenant  id.ID `json:"tenant"`
	Account id.ID `json:"account"`
}

// About names the account.
func (e AccountDisabled) About() (tenant, subject id.ID) { return e.Tenant, e.Account }

// DirectoryDisabled says that an enabled directory was disabled. No service consumes it: it is for
// the audit log and for consumers outside. Tokens of its accounts are refused at their next use
// (services/directory/access.go).
type DirectoryDisabled struct {
	Tenant    id.ID `json:"tenant"`
	Directory id.ID `json:"directory"`
}

// About names the directory.
func (e DirectoryDisabled) About() (tenant, subject id.ID) { return e.Tenant, e.Directory }

// SessionEnded says that a session of single sign-on has ended before its time, so that the clients to
// which codes were given in it are told (OpenID Connect Back-Channel Logout).
type SessionEnded struct {
	Tenant  id.ID   `json:"tenant"`
	Account id.ID   `json:"account"`
	Session id.ID   `json:"session"` // the claim sid
	Clients []id.ID `json:"clients,omitempty"`
}

// About names the account.
func (e SessionEnded) About() (tenant, subject id.ID) { return e.Tenant, e.Account }

// SiteDomainChanged says which domain the hosted pages of a tenant have now: OpenID providers may have their
// issuer there (docs/interface/openid.md#provider).
type SiteDomainChanged struct {
	Tenant id.ID  `json:"tenant"`
	Domain string `json:"domain"`
}

// About names the tenant.
func (e SiteDomainChanged) About() (tenant, subject id.ID) { return e.Tenant, e.Tenant }
