package directoryapi

import (
	"context"
	"encoding/json"
	"time"

	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
)

// Hosted is what the hosted pages and the Client API ask of the directory service, for a browser
// without an API key.
type Hosted interface {
	// LoginDirectories returns those of the directories that exist, in the order of the request, with
	// what a login page shows of their providers.
	LoginDirectories(context.Context, LoginDirectories) (LoginDirectoryList, error)

	// RegistrationRules returns what a registration page has to know of a directory, or
	// apierr.NotFound.
	RegistrationRules(context.Context, Ref) (RegistrationRules, error)

	SAML

	// RequestSignUp sends the mail that confirms a sign-up. It returns the errors of a new account,
	// and apierr.TooMany.
	RequestSignUp(context.Context, RequestSignUp) (Empty, error)

	// PendingSignUp returns the sign-up or invitation of a mailed token, or apierr.NotFound.
	PendingSignUp(context.Context, SignUpToken) (PendingSignUp, error)

	// EndSignUp consumes a mailed token. Of concurrent calls one succeeds, and the others return
	// apierr.NotFound.
	EndSignUp(context.Context, SignUpToken) (Empty, error)

	// AcceptInvitation creates the account of an invited administrator. It returns apierr.NotFound for
	// the token, apierr.OtherInvitee, and the errors of a new account.
	AcceptInvitation(context.Context, AcceptInvitation) (Account, error)
}

// RequestSignUp is a sign-up, with the ids of the tenant and of the owner's account that are
// created after its confirmation.
type RequestSignUp struct {
	Tenant  id.ID      `json:"tenant"`
	Account id.ID      `json:"account"`
	Owner   NewAccount `json:"owner"`
}

// SignUpToken is the token in the mail of a sign-up or an invitation.
type SignUpToken struct {
	Token secure.Secret `json:"token"`
}

// PendingSignUp is a sign-up that is not confirmed, or an invitation that is not accepted yet.
type PendingSignUp struct {
	Tenant     id.ID  `json:"tenant"`
	Account    id.ID  `json:"account"`
	Email      string `json:"email"`
	Invitation bool   `json:"invitation"`
}

// AcceptInvitation is the account that an invited administrator has entered.
type AcceptInvitation struct {
	Token   secure.Secret `json:"token"`
	Account NewAccount    `json:"account"`
}

// LoginDirectories is the request of Hosted.LoginDirectories.
type LoginDirectories struct {
	Tenant      id.ID   `json:"tenant"`
	Directories []id.ID `json:"directories"`
}

// LoginDirectoryList is the answer to LoginDirectories.
type LoginDirectoryList struct {
	Items []LoginDirectory `json:"items"`
}

// LoginDirectory is a directory as a login page shows it, without secrets of its provider.
type LoginDirectory struct {
	ID           id.ID    `json:"id"`
	Name         string   `json:"name"`
	Status       string   `json:"status"` // Enabled or Disabled
	ProviderID   string   `json:"providerId"`
	ProviderType string   `json:"providerType"`
	ClientID     *string  `json:"clientId"` // nil where the provider has none
	Scope        []string `json:"scope"`
	HD           *string  `json:"hd"`         // google: hosted domain
	Display      *string  `json:"display"`    // google
	AccessType   *string  `json:"accessType"` // google
}

// RegistrationRules is what a directory requires of a new account, and which mails it sends.
type RegistrationRules struct {
	Directory         string `json:"directory"` // its name
	Builtin           bool   `json:"builtin"`
	GivenNameRequired bool   `json:"givenNameRequired"`
	SurnameRequired   bool   `json:"surnameRequired"`
	// The numbers of the password strength: docs/interface/accounts.md#password-policy.
	MinLength    int `json:"minLength"`
	MaxLength    int `json:"maxLength"`
	MinLowerCase int `json:"minLowerCase"`
	MinUpperCase int `json:"minUpperCase"`
	MinNumeric   int `json:"minNumeric"`
	MinSymbol    int `json:"minSymbol"`
	MinDiacritic int `json:"minDiacritic"`
	// VerificationEmail and ResetEmail say which mails the directory sends.
	VerificationEmail bool `json:"verificationEmail"`
	ResetEmail        bool `json:"resetEmail"`
	Mirror            bool `json:"mirror"` // no account can be registered in it
}

// ProfileRequest is the request of API.Profile: an account, and which related resources are to be
// returned.
type ProfileRequest struct {
	Ref
	Directory    bool `json:"directory,omitempty"`
	OfTenant     bool `json:"ofTenant,omitempty"` // the tenant itself
	Groups       bool `json:"groups,omitempty"`
	Memberships  bool `json:"memberships,omitempty"`
	CustomData   bool `json:"customData,omitempty"`
	ProviderData bool `json:"providerData,omitempty"`
}

// Profile is an account with related resources; those that were not requested are zero. Groups and
// memberships are complete, in the order of their names.
type Profile struct {
	Account      Account             `json:"account"`
	Directory    *Directory          `json:"directory,omitempty"`
	Tenant       *Tenant             `json:"tenant,omitempty"`
	Groups       []Group             `json:"groups,omitempty"`
	Memberships  []ProfileMembership `json:"memberships,omitempty"`
	CustomData   json.RawMessage     `json:"customData,omitempty"`   // the whole object
	ProviderData json.RawMessage     `json:"providerData,omitempty"` // plain members, without tokens
}

// ProfileMembership is the membership of the account in a group.
type ProfileMembership struct {
	ID         id.ID     `json:"id"`
	CreatedAt  time.Time `json:"createdAt"`
	ModifiedAt time.Time `json:"modifiedAt"`
}
