package directory

import (
	"cmp"
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

// The rate limits of the mails of sign-ups and invitations within signUpWindow: of sign-ups by email
// and by network, of invitations by tenant and email.
const (
	signUpWindow        = time.Hour
	maxSignUpsOfEmail   = 3
	maxSignUpsOfNetwork = 10
)

// defaultStrength is the password strength of a new directory. The owner's password is validated
// against it at a sign-up, before the directory exists.
var defaultStrength = store.PasswordPolicy{
	MinLength: 8, MaxLength: 100, MinLowerCase: 1, MinUpperCase: 1, MinNumeric: 1,
}

// RequestSignUp stores a sign-up for a new tenant and sends the mail that confirms the address
// (docs/interface/authentication.md#sign-up); SignUp creates the tenant after that. Time and
// answer are the same for every email; beyond the rate limit of an email no mail is sent. It
// returns the errors of a new account, and apierr.TooMany beyond the rate limit of the network.
func (s *Service) RequestSignUp(ctx context.Context, in directoryapi.RequestSignUp) (directoryapi.Empty, error) {
	var owner directoryapi.Account
	refusal := ApplyAccount(&owner, in.Owner, store.RegistrationPolicy{}, true)
	if refusal = field.First(refusal, CheckRequired(owner, true, true),
		requirePassword(in.Owner.Password)); refusal != nil {
		return directoryapi.Empty{}, refusal
	}
	if err := checkStrength(defaultStrength, in.Owner.Password.Value); err != nil {
		return directoryapi.Empty{}, err
	}
	// All sign-ups share one place in the fair queue of hashes, that of the zero tenant id: each has a tenant id
	// of its own.
	hash, err := s.passwords.Hash(ctx, id.ID{}, secure.Secret(in.Owner.Password.Value))
	if err != nil {
		return directoryapi.Empty{}, err
	}
	_, err = s.insertSignUp(ctx, store.SignUp{
		TenantID: in.Tenant, AccountID: in.Account, Email: owner.Email, AddressHash: s.addressHash(ctx),
		GivenName: owner.GivenName,
		Surname:   owner.Surname, PasswordHash: &hash,
	})
	return directoryapi.Empty{}, err // no error tells that no mail was sent
}

// insertSignUp stores a sign-up or an invitation with a new token and requests its mail. mailed is
// false beyond the rate limit of the email.
func (s *Service) insertSignUp(ctx context.Context, signUp store.SignUp) (mailed bool, err error) {
	token := secure.Token(43)
	signUp.Digest, signUp.CreatedAt = secure.Digest(token), s.now()
	signUp.ExpiresAt = signUp.CreatedAt.Add(s.cfg.VerificationTTL)
	err = s.store.Tx(ctx, func(tx *store.Tx) error {
		ofEmail, ofNetwork, err := tx.CountSignUps(ctx, signUp, signUp.CreatedAt.Add(-signUpWindow))
		switch {
		case err != nil:
			return err
		case signUp.AddressHash != "" && ofNetwork >= maxSignUpsOfNetwork:
			return apierr.TooMany.Because("too many sign-ups came from this network; try again in an hour").
				WithRetryAfter(signUpWindow)
		case ofEmail >= maxSignUpsOfEmail:
			return nil
		}
		mailed = true
		if err := tx.InsertSignUp(ctx, signUp); err != nil {
			return err
		}
		return tx.Emit(ctx, events.SignUpRequested{
			Tenant: signUp.TenantID, Account: signUp.AccountID,
			Token: s.ring.Seal(token, events.MailTokenPurpose(signUp.AccountID)),
		})
	})
	return mailed, err
}

// addressHash returns the hash of the client's network that is stored for the rate limit; empty
// where the network is not known.
func (s *Service) addressHash(ctx context.Context) string {
	network := caller.From(ctx).Network()
	if !network.IsValid() {
		return ""
	}
	_, key := s.ring.Derive("directory.sign-up address")
	return hex.EncodeToString([]byte(secure.Derive(key, network.String())))
}

// pendingSignUp returns the sign-up or invitation of a mailed token, or apierr.NotFound.
func (s *Service) pendingSignUp(ctx context.Context, token secure.Secret) (pending store.SignUp, err error) {
	digest := secure.Digest(token)
	tenant, err := s.store.SignUpTenant(ctx, digest)
	if err != nil {
		return pending, noSignUp(err)
	}
	pending, err = s.store.SignUp(ctx, tenant, digest, s.now())
	return pending, noSignUp(err)
}

// noSignUp adds the reason to apierr.NotFound.
func noSignUp(err error) error {
	if errors.Is(err, apierr.NotFound) {
		return apierr.NotFound.Because("the token of the mail is unknown, used or expired")
	}
	return err
}

// PendingSignUp returns the sign-up or invitation of a mailed token, or apierr.NotFound.
func (s *Service) PendingSignUp(ctx context.Context, in directoryapi.SignUpToken) (directoryapi.PendingSignUp, error) {
	pending, err := s.pendingSignUp(ctx, in.Token)
	return directoryapi.PendingSignUp{
		Tenant: pending.TenantID, Account: pending.AccountID, Email: pending.Email, Invitation: pending.IsInvitation(),
	}, err
}

// EndSignUp consumes a mailed token. Of concurrent calls one succeeds, and the others return
// apierr.NotFound.
func (s *Service) EndSignUp(ctx context.Context, in directoryapi.SignUpToken) (directoryapi.Empty, error) {
	pending, err := s.pendingSignUp(ctx, in.Token)
	if err != nil {
		return directoryapi.Empty{}, err
	}
	return directoryapi.Empty{},
		s.store.Tx(ctx, func(tx *store.Tx) error { return tx.DeleteSignUp(ctx, pending.TenantID, pending.Digest) })
}

// signUpMail returns what the mail of a sign-up or an invitation is made of, or apierr.NotFound.
func (s *Service) signUpMail(ctx context.Context, in directoryapi.MailOf) (directoryapi.Mail, error) {
	pending, err := s.store.SignUpByAccount(ctx, in.Tenant, in.Account)
	if err != nil {
		return directoryapi.Mail{}, err
	}
	mail := directoryapi.Mail{
		Account: directoryapi.Account{TenantID: in.Tenant, ID: in.Account, Username: pending.Email,
			Email:     pending.Email,
			GivenName: pending.GivenName, Surname: pending.Surname},
		Template: directoryapi.EmailTemplate{
			TenantID: in.Tenant, Workflow: directoryapi.SigningUp, Unchanged: true,
		},
	}
	if pending.IsInvitation() {
		mail.Template.Workflow = directoryapi.Invitation
	}
	return mail, nil
}

// SignUp creates a tenant with its administrators directory and its owner's account, in one
// transaction (docs/interface/authentication.md#sign-up). The owner's email is verified only where
// the sign-up was confirmed by its mail (RequestSignUp). A repeated call with the same ids returns
// what the first created.
func (s *Service) SignUp(ctx context.Context, in directoryapi.SignUp) (directoryapi.SignedUp, error) {
	existing, err := s.existingSignUp(ctx, in)
	if !errors.Is(err, apierr.NotFound) {
		return existing, err
	}
	owner := directoryapi.Account{
		TenantID: in.Tenant, ID: in.Owner, DirectoryID: in.Directory, Username: in.Email, Email: in.Email,
		Status: directoryapi.Enabled, EmailVerificationStatus: directoryapi.Unverified, Owner: true,
	}
	hash := ""
	if in.Pending {
		pending, err := s.store.SignUpByAccount(ctx, in.Tenant, in.Owner)
		if err != nil || pending.IsInvitation() {
			return directoryapi.SignedUp{}, errors.Join(err, apierr.NotFound)
		}
		owner.Username, owner.Email, owner.GivenName, owner.Surname = pending.Email, pending.Email, pending.GivenName,
			pending.Surname
		owner.EmailVerificationStatus, hash = directoryapi.Verified, *pending.PasswordHash
	}
	if in.Password != "" {
		if hash, err = s.passwords.Hash(ctx, in.Tenant, in.Password); err != nil {
			return directoryapi.SignedUp{}, err
		}
	}
	now := s.now()
	err = s.store.Tx(ctx, func(tx *store.Tx) error {
		tenant := directoryapi.Tenant{ID: in.Tenant, Key: in.Key, Name: cmp.Or(in.Name, in.Key),
			Status: directoryapi.Enabled, CreatedAt: now,
			ModifiedAt: now}
		if err := tx.InsertTenant(ctx, tenant); err != nil {
			return err
		}
		administrators := directoryapi.Directory{
			TenantID: in.Tenant, ID: in.Directory, Name: in.DirectoryName, Builtin: true, CreatedAt: now,
		}
		if err := s.insertDirectory(ctx, tx, administrators); err != nil {
			return err
		}
		owner.PasswordModifiedAt, owner.CreatedAt, owner.ModifiedAt = initialPasswordModifiedAt(now), now, now
		return tx.InsertAccount(ctx, owner, hash, nil)
	})
	if err != nil && !errors.Is(err, apierr.Exists) {
		return directoryapi.SignedUp{}, err
	}
	existing, lookupErr := s.existingSignUp(ctx, in) // also where a concurrent call was first
	if errors.Is(lookupErr, apierr.NotFound) && err != nil {
		return directoryapi.SignedUp{}, err
	}
	return existing, lookupErr
}

// existingSignUp returns what a call of SignUp with these ids has created, or apierr.NotFound.
func (s *Service) existingSignUp(ctx context.Context, in directoryapi.SignUp) (out directoryapi.SignedUp, err error) {
	if out.Tenant, err = s.store.Tenant(ctx, in.Tenant); err != nil {
		return out, err
	}
	if out.Directory, err = s.store.Directory(ctx, in.Tenant, in.Directory); err != nil {
		return out, err
	}
	out.Owner, err = s.store.Account(ctx, in.Tenant, in.Owner)
	return out, err
}
