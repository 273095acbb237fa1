package directory

import (
	"context"
	"errors"
	"time"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/services/directory/store"
)

// NewInvitation is the body that invites an administrator.
type NewInvitation struct {
	Email field.Text `json:"email"`
}

// Invitation is an invitation that has not been accepted yet.
type Invitation struct {
	Tenant               id.ID
	Email                string
	CreatedAt, ExpiresAt time.Time
}

// Invite sends the mail that invites an administrator of a tenant. The invitation is stored as a
// sign-up without a password (signup.go). It returns apierr.Exists where an administrator has that
// email, and apierr.TooMany beyond the rate limit of the tenant's invitations of that email.
func (s *Service) Invite(ctx context.Context, at id.Ref, in NewInvitation) (Invitation, error) {
	owner, err := s.Owner(ctx, at)
	if err != nil {
		return Invitation{}, err
	}
	email, err := field.Required(in.Email, "email", 255)
	if err != nil {
		return Invitation{}, err
	}
	if err := field.Email("email", email); err != nil {
		return Invitation{}, err
	}
	administrators := []directoryapi.Store{{Kind: directoryapi.Directories, ID: owner.DirectoryID}}
	_, err = s.store.FindAccountByLogin(ctx, at.Tenant, administrators, email)
	if err == nil {
		return Invitation{}, apierr.Exists.Because("an administrator has the email %q", email).
			Saying("That person is an administrator already.")
	}
	if !errors.Is(err, apierr.NotFound) {
		return Invitation{}, err
	}
	now := s.now()
	mailed, err := s.insertSignUp(ctx, store.SignUp{TenantID: at.Tenant, AccountID: id.New(now), Email: email})
	if err != nil {
		return Invitation{}, err
	}
	if !mailed {
		return Invitation{}, apierr.TooMany.WithRetryAfter(signUpWindow).
			Because("too many invitations were sent to this address lately; try again in an hour")
	}
	return Invitation{at.Tenant, email, now, now.Add(s.cfg.VerificationTTL)}, nil
}

// AcceptInvitation creates the account of an invited administrator; the mail has verified its
// email. It returns apierr.NotFound for an invalid or used token, apierr.OtherInvitee for another
// email, and the errors of a new account, which do not consume the token.
func (s *Service) AcceptInvitation(ctx context.Context,
	in directoryapi.AcceptInvitation) (directoryapi.Account, error) {
	invitation, err := s.pendingSignUp(ctx, in.Token)
	if err != nil {
		return directoryapi.Account{}, err
	}
	if !invitation.IsInvitation() {
		return directoryapi.Account{}, apierr.NotFound.Because("the token is that of a sign-up")
	}
	if !field.SameMailbox(in.Account.Email.Or(""), invitation.Email) {
		return directoryapi.Account{},
			apierr.OtherInvitee.Because("the email must be the one that the invitation was sent to")
	}
	ctx = caller.WithTenant(ctx, invitation.TenantID)
	owner, err := s.store.Owner(ctx, invitation.TenantID)
	if err != nil {
		return owner, err
	}
	in.Account.EmailVerificationStatus = field.Some(directoryapi.Verified)
	account, err := s.CreateAccount(ctx, directoryapi.CreateAccount{
		Tenant: invitation.TenantID, ID: invitation.AccountID, Directory: owner.DirectoryID, Account: in.Account,
	})
	if err != nil {
		return account, err
	}
	_, err = s.EndSignUp(ctx, directoryapi.SignUpToken{Token: in.Token})
	return account, err
}
