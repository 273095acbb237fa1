package directory

import (
	"context"
	"encoding/hex"
	"errors"
	"time"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/events"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/directory/store"
)

// The limits of sign-ups and invitations that are not answered yet.
const (
	signUpWindow        = time.Hour
	maxSignUpsOfEmail   = 3
	maxSignUpsOfAddress = 10
)

// defaultStrength is the password strength of a new directory, which the owner's
// password must have before there is one.
var defaultStrength = store.PasswordPolicy{MinLength: 8, MaxLength: 100, MinLowerCase: 1, MinUpperCase: 1, MinNumeric: 1}

// RequestSignUp keeps what a future owner has entered and lets the mail go out that
// confirms the address (docs/interface/authentication.md#sign-up). No tenant is
// made. The work and the answer are the same for every email; one that was used too
// often lately gets no further mail. It returns the refusals of a new account, and
// apierr.TooMany for the network that asks too often.
func (s *Service) RequestSignUp(ctx context.Context, in directoryapi.RequestSignUp) (directoryapi.Empty, error) {
	var owner directoryapi.Account
	refusal := apply(&owner, in.Owner, store.Registrar{}, true)
	if refusal = field.First(refusal, checkRequired(owner, true, true), given(in.Owner.Password)); refusal != nil {
		return directoryapi.Empty{}, refusal
	}
	if err := checkStrength(defaultStrength, in.Owner.Password.Value); err != nil {
		return directoryapi.Empty{}, err
	}
	// All sign-ups are one tenant in the queue: each has an id of its own.
	hash, err := s.passwords.Hash(ctx, id.ID{}, secure.Secret(in.Owner.Password.Value))
	if err != nil {
		return directoryapi.Empty{}, err
	}
	_, err = s.insertSignUp(ctx, store.SignUp{
		TenantID: in.Tenant, AccountID: in.Account, Email: owner.Email, AddressHash: s.addressHash(ctx), GivenName: owner.GivenName,
		Surname: owner.Surname, PasswordHash: &hash,
	})
	return directoryapi.Empty{}, err // which is the same where no mail goes out
}

// insertSignUp adds a sign-up with a new token and lets its mail go out. mailed is
// false for an address that got too many mails.
func (s *Service) insertSignUp(ctx context.Context, v store.SignUp) (mailed bool, err error) {
	token := secure.Token(43)
	v.Digest, v.CreatedAt = secure.Digest(token), s.now()
	v.ExpiresAt = v.CreatedAt.Add(s.cfg.VerificationTTL)
	err = s.store.Tx(s.store.OnMain(ctx), func(tx *store.Tx) error {
		ofEmail, ofAddress, err := tx.CountSignUps(ctx, v.Email, v.AddressHash, v.CreatedAt.Add(-signUpWindow))
		switch {
		case err != nil:
			return err
		case v.AddressHash != "" && ofAddress >= maxSignUpsOfAddress:
			return apierr.TooMany.Because("too many sign-ups came from this network; try again in an hour").After(signUpWindow)
		case ofEmail >= maxSignUpsOfEmail:
			return nil
		}
		mailed = true
		if err := tx.InsertSignUp(ctx, v); err != nil {
			return err
		}
		return tx.Emit(ctx, events.SignUpRequested{
			Tenant: v.TenantID, Account: v.AccountID, Token: s.ring.Seal(token, events.MailTokenPurpose(v.AccountID)),
		})
	})
	return mailed, err
}

// addressHash is what is kept of the network that asks.
func (s *Service) addressHash(ctx context.Context) string {
	network := caller.From(ctx).Network()
	if !network.IsValid() {
		return ""
	}
	_, key := s.ring.Derive("directory.sign-up address")
	return hex.EncodeToString([]byte(secure.Derive(key, network.String())))
}

// openSignUp returns the sign-up of a mailed token, or apierr.NotFound.
func (s *Service) openSignUp(ctx context.Context, token secure.Secret) (v store.SignUp, err error) {
	digest := secure.Digest(token)
	tenant, err := s.store.SignUpTenant(ctx, digest)
	if err == nil {
		v, err = s.store.SignUp(ctx, tenant, digest, s.now())
	}
	if errors.Is(err, apierr.NotFound) {
		err = apierr.NotFound.Because("the token of the mail is unknown, used or expired")
	}
	return v, err
}

// PendingSignUp returns what a mailed token leads to, or apierr.NotFound.
func (s *Service) PendingSignUp(ctx context.Context, in directoryapi.SignUpToken) (directoryapi.PendingSignUp, error) {
	v, err := s.openSignUp(ctx, in.Token)
	return directoryapi.PendingSignUp{Tenant: v.TenantID, Account: v.AccountID, Email: v.Email, Invitation: v.PasswordHash == nil}, err
}

// EndSignUp spends a mailed token. Of parallel calls one succeeds, and the others
// return apierr.NotFound.
func (s *Service) EndSignUp(ctx context.Context, in directoryapi.SignUpToken) (directoryapi.Empty, error) {
	v, err := s.openSignUp(ctx, in.Token)
	if err != nil {
		return directoryapi.Empty{}, err
	}
	ctx = s.store.OnMain(ctx)
	return directoryapi.Empty{}, s.store.Tx(ctx, func(tx *store.Tx) error { return tx.DeleteSignUp(ctx, v.TenantID, v.Digest) })
}

// Invite is the body that invites an administrator.
type Invite struct {
	Email field.Text `json:"email"`
}

// Invitation is an invitation whose mail has not been answered.
type Invitation struct {
	Tenant               id.ID
	Email                string
	CreatedAt, ExpiresAt time.Time
}

// Invite lets the mail go out that invites an administrator of a tenant. It returns
// apierr.Exists for the email of one that is there, and apierr.TooMany for an
// address that got too many mails.
func (s *Service) Invite(ctx context.Context, at id.Ref, in Invite) (Invitation, error) {
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
	_, err = s.store.FindAddressee(ctx, at.Tenant, administrators, email)
	if err == nil {
		return Invitation{}, apierr.Exists.Because("an administrator has the email %q", email).Saying("That person is an administrator already.")
	}
	if !errors.Is(err, apierr.NotFound) {
		return Invitation{}, err
	}
	now := s.now()
	mailed, err := s.insertSignUp(ctx, store.SignUp{TenantID: at.Tenant, AccountID: id.New(now), Email: email})
	if err == nil && !mailed {
		err = apierr.TooMany.Because("too many mails were sent to this address lately; try again in an hour").After(signUpWindow)
	}
	return Invitation{at.Tenant, email, now, now.Add(s.cfg.VerificationTTL)}, err
}

// AcceptInvitation makes the account of an invited administrator, whose email the
// mail has verified. It returns apierr.NotFound for a token that is not good, which
// of parallel calls all but one get, apierr.OtherInvitee, and the refusals of a new
// account, which leave the token as it is.
func (s *Service) AcceptInvitation(ctx context.Context, in directoryapi.AcceptInvitation) (directoryapi.Account, error) {
	v, err := s.openSignUp(ctx, in.Token)
	if err != nil {
		return directoryapi.Account{}, err
	}
	if v.PasswordHash != nil {
		return directoryapi.Account{}, apierr.NotFound.Because("the token is that of a sign-up")
	}
	if !field.SameMailbox(in.Account.Email.Or(""), v.Email) {
		return directoryapi.Account{}, apierr.OtherInvitee.Because("the email must be the one that the invitation was sent to")
	}
	ctx = caller.WithTenant(ctx, v.TenantID)
	owner, err := s.store.Owner(ctx, v.TenantID)
	if err != nil {
		return owner, err
	}
	in.Account.EmailVerificationStatus = field.Some(directoryapi.Verified)
	made, err := s.CreateAccount(ctx, directoryapi.CreateAccount{
		Tenant: v.TenantID, ID: v.AccountID, Directory: owner.DirectoryID, Account: in.Account,
	})
	if err != nil {
		return made, err
	}
	_, err = s.EndSignUp(ctx, directoryapi.SignUpToken{Token: in.Token})
	return made, err
}

// signUpMail returns what the mail of an open sign-up or invitation is made of, or
// apierr.NotFound.
func (s *Service) signUpMail(ctx context.Context, in directoryapi.MailOf) (directoryapi.Mail, error) {
	v, err := s.store.SignUpOf(ctx, in.Tenant, in.Account)
	if err != nil {
		return directoryapi.Mail{}, err
	}
	mail := directoryapi.Mail{
		Account: directoryapi.Account{TenantID: in.Tenant, ID: in.Account, Username: v.Email, Email: v.Email, GivenName: v.GivenName,
			Surname: v.Surname},
		Template: directoryapi.EmailTemplate{
			TenantID: in.Tenant, Workflow: in.Workflow, MimeType: plainText, Subject: "Confirm your sign-up",
			TextBody: "$!{greeting}\n\nPlease confirm your email address to complete your sign-up at $!{sender.name}:\n\n$!{url}\n\n" +
				"If you did not ask for this, you can ignore this mail.\n",
		},
	}
	if v.PasswordHash == nil {
		mail.Template.Subject = "You are invited as an administrator"
		mail.Template.TextBody = "Hello,\n\nYou are invited to become an administrator at $!{sender.name}. " +
			"Choose your password here:\n\n$!{url}\n\nIf you did not expect this, you can ignore this mail.\n"
	}
	return mail, nil
}
