package directoryapi

import (
	"time"

	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
)

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
	Tenant id.ID `json:"tenant,omitzero"` // zero for a mailed link: the tenant in the token
	// a JWT, its dots percent-encoded or not (docs/interface/accounts.md#password-reset)
	Token secure.Secret `json:"token"`
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
