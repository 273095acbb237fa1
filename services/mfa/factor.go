package mfa

import (
	"context"
	"errors"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/events"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/list"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/mfa/store"
)

// Factor returns a factor, or apierr.NotFound.
func (s *Service) Factor(ctx context.Context, at id.Ref) (store.Factor, error) {
	return s.withAuthenticatorFields(s.ownedFactor(ctx, at))
}

// ownedFactor reads a factor whose account exists.
func (s *Service) ownedFactor(ctx context.Context, at id.Ref) (store.Factor, error) {
	f, err := s.store.Factor(ctx, at.Tenant, at.ID)
	if err != nil {
		return f, err
	}
	return f, s.checkOwner(ctx, at.Tenant, f.AccountID)
}

// AccountFactors returns a page of the factors of an account.
func (s *Service) AccountFactors(ctx context.Context, account id.Ref,
	query list.Query) (list.Page[store.Factor], error) {
	page, err := list.PageOf(ctx, s.directory.Account, s.store.AccountFactors, account, query)
	for i := range page.Items {
		if page.Items[i], err = s.withAuthenticatorFields(page.Items[i], err); err != nil {
			return page, err
		}
	}
	return page, err
}

// withAuthenticatorFields adds what is not stored of an authenticator: its secret in clear,
// its key URI and its QR code.
func (s *Service) withAuthenticatorFields(f store.Factor, err error) (store.Factor, error) {
	if err != nil || f.Type != store.Authenticator {
		return f, err
	}
	if f.Secret, err = s.ring.Open(f.SecretSealed, secretPurpose(f.ID)); err != nil {
		return f, err
	}
	return f, setQRCode(&f)
}

// NewFactor is the body that creates a factor of either type.
type NewFactor struct {
	FactorChange
	Type          field.Text                   `json:"type"`
	Phone         field.Nullable[FactorPhone]  `json:"phone"`
	Challenge     field.Nullable[NewChallenge] `json:"challenge"`
	Secret        secretText                   `json:"secret"` // of an authenticator that another service has enrolled
	Verified      field.Text                   `json:"verificationStatus"`
	WithChallenge bool                         `json:"-"` // the query asks for a challenge
	// the user enrolls the factor, not the tenant with its API key
	ByUser bool `json:"-"`
}

// secretText is a secret in a body.
type secretText = field.Nullable[secure.Secret]

// FactorChange is the body that updates a factor.
type FactorChange struct {
	Status      field.Text `json:"status"`
	AccountName field.Text `json:"accountName"`
	Issuer      field.Text `json:"issuer"`
}

// CreateFactor creates (enrolls) a factor of an account, and in the same transaction a
// challenge of that factor where the body or the query asks for one. Users enroll through
// EnrollFactor (enrollment.go).
func (s *Service) CreateFactor(ctx context.Context, account id.Ref, in NewFactor) (store.Factor, error) {
	a, err := s.directory.Account(ctx, account)
	if err != nil {
		return store.Factor{}, err
	}
	f, err := s.readNewFactor(a, in)
	if err != nil {
		return f, err
	}
	err = s.enrollTx(ctx, a, func(tx *store.Tx) (err error) {
		if in.ByUser {
			if err := s.checkEnrollmentLimit(ctx, tx, f); err != nil {
				return err
			}
		}
		if f.Type == store.SMS {
			if f.PhoneID, err = s.findOrInsertPhone(ctx, tx, a, in.Phone.Value); err != nil {
				return err
			}
			if in.ByUser {
				// A user who has mistyped a number enrolls another one: of the phones that wait for
				// their first code only the newest stays.
				if err := tx.DeleteUnverifiedPhones(ctx, f.TenantID, f.AccountID, f.PhoneID); err != nil {
					return err
				}
			}
		}
		if err := emitFactorChanged(ctx, tx, f, false); err != nil {
			return err
		}
		if err := tx.InsertFactor(ctx, f); err != nil || !in.Challenge.Given() && !in.WithChallenge {
			return err
		}
		_, err = s.insertChallenge(ctx, tx, &f, in.Challenge.Value)
		return err
	})
	if errors.Is(err, apierr.Exists) {
		err = apierr.PhoneHasFactor.Because("the phone has a factor; use that, or delete it first")
	}
	return f, err
}

// readNewFactor makes a factor from a body and checks what can be checked without the
// database.
func (s *Service) readNewFactor(a directoryapi.Account, in NewFactor) (store.Factor, error) {
	now := s.now()
	f := store.Factor{
		TenantID: a.TenantID, ID: id.New(now), AccountID: a.ID,
		Status: store.Enabled, VerificationStatus: store.Unverified, CreatedAt: now, ModifiedAt: now,
	}
	var err error
	if f.Type, err = field.Enum(in.Type, "type", "", store.SMS, store.Authenticator); err != nil {
		return f, err
	}
	switch f.Type {
	case store.SMS:
		if err := refuseUnusedProperties(f.Type, map[string]bool{"secret": in.Secret.Given()}); err != nil {
			return f, err
		}
		if !in.Phone.Given() {
			return f, apierr.Required.Because(`phone is required, with a number or an href`)
		}
	case store.Authenticator:
		if err := refuseUnusedProperties(f.Type, map[string]bool{"phone": in.Phone.Given()}); err != nil {
			return f, err
		}
		if !in.AccountName.Present {
			in.AccountName = field.Some(a.Username)
		}
		secret := newTOTPSecret()
		if in.Secret.Given() {
			if secret, err = readTOTPSecret(in.Secret.Value); err != nil {
				return f, err
			}
			// Without a secret that the user has already nothing can be verified: it is read-only then.
			f.VerificationStatus, err = field.Enum(in.Verified.NullIsAbsent(true), "verificationStatus",
				store.Unverified, store.Verified, store.Unverified)
			if err != nil {
				return f, err
			}
		}
		f.SecretSealed, f.Secret = s.ring.Seal(secret, secretPurpose(f.ID)), secret
	default:
		return f, apierr.Required.Because("type is required: %s or %s", store.SMS, store.Authenticator)
	}
	if in.Challenge.Value.Code.Given() {
		return f, apierr.UnusedProperty.Because("a challenge of a new factor has no code yet")
	}
	return f, in.apply(&f, true)
}

// UpdateFactor changes what the body names. A new issuer or accountName changes the
// keyUri and the image of an authenticator, not its secret.
func (s *Service) UpdateFactor(ctx context.Context, at id.Ref, in FactorChange) (store.Factor, error) {
	f, err := s.ownedFactor(ctx, at)
	if err != nil {
		return f, err
	}
	err = s.lockedTx(ctx, at.Tenant, f.AccountID, func(tx *store.Tx) (err error) {
		if f, err = tx.LockFactor(ctx, at.Tenant, at.ID); err != nil {
			return err
		}
		if f.Type == store.Authenticator {
			if f.Secret, err = s.ring.Open(f.SecretSealed, secretPurpose(f.ID)); err != nil {
				return err
			}
		}
		if err := in.apply(&f, false); err != nil {
			return err
		}
		f.ModifiedAt = s.now()
		return tx.UpdateFactor(ctx, f)
	})
	return f, err
}

// apply checks the members of a body, writes them into a factor, and renews the key URI
// and the QR code of an authenticator.
func (in FactorChange) apply(f *store.Factor, isNew bool) error {
	var errs field.Errors
	errs.Enum(&f.Status, in.Status.NullIsAbsent(isNew), "status", store.Enabled, store.Disabled)
	if f.Type != store.Authenticator {
		errs.Add(refuseUnusedProperties(f.Type,
			map[string]bool{"accountName": in.AccountName.Given(), "issuer": in.Issuer.Given()}))
		return errs.First()
	}
	errs.Add(readLabel(in.AccountName, "accountName", &f.AccountName))
	if !in.Issuer.Null { // null is absent
		errs.Add(readLabel(in.Issuer, "issuer", &f.Issuer))
	}
	if err := errs.First(); err != nil {
		return err
	}
	return setQRCode(f)
}

// DeleteFactor removes a factor with its challenges, not its phone.
func (s *Service) DeleteFactor(ctx context.Context, at id.Ref) error {
	f, err := s.store.Factor(ctx, at.Tenant, at.ID)
	if err != nil {
		return err
	}
	return s.lockedTx(ctx, at.Tenant, f.AccountID, func(tx *store.Tx) error {
		f, err := tx.LockFactor(ctx, at.Tenant, at.ID)
		if err != nil {
			return err
		}
		if err := emitFactorChanged(ctx, tx, f, true); err != nil {
			return err
		}
		return tx.DeleteFactor(ctx, at.Tenant, at.ID)
	})
}

// emitFactorChanged emits the event by which the owner of an account gets a mail that a factor was
// added or removed. A factor that was never verified passes no login, and is none yet; no
// mail is sent of those that are deleted with their account.
func emitFactorChanged(ctx context.Context, tx *store.Tx, f store.Factor, removed bool) error {
	if f.VerificationStatus != store.Verified {
		return nil
	}
	return tx.Emit(ctx, events.FactorChanged{Tenant: f.TenantID, Account: f.AccountID, Type: f.Type, Removed: removed})
}
