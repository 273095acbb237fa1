package mfa

import (
	"context"
	"errors"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/list"
	"github.com/doorward/doorward/services/mfa/store"
)

// Factor returns a factor, or apierr.NotFound.
func (s *Service) Factor(ctx context.Context, at id.Ref) (store.Factor, error) {
	return s.shown(s.store.Factor(ctx, at.Tenant, at.ID))
}

// AccountFactors returns a page of the factors of an account.
func (s *Service) AccountFactors(ctx context.Context, account id.Ref, query list.Query) (list.Page[store.Factor], error) {
	page, err := list.PageOf(ctx, s.directory.Account, s.store.AccountFactors, account, query)
	for i := range page.Items {
		if page.Items[i], err = s.shown(page.Items[i], err); err != nil {
			return page, err
		}
	}
	return page, err
}

// shown adds the fields of an authenticator that are not stored.
func (s *Service) shown(f store.Factor, err error) (store.Factor, error) {
	if err != nil || f.Type != store.Authenticator {
		return f, err
	}
	if f.Secret, err = s.ring.Open(f.SecretSealed, secretPurpose(f.ID)); err != nil {
		return f, err
	}
	return f, picture(&f)
}

// NewFactor is the body that creates a factor of either type.
type NewFactor struct {
	FactorText
	Type      field.Text             `json:"type"`
	Phone     field.Of[FactorPhone]  `json:"phone"`
	Challenge field.Of[NewChallenge] `json:"challenge"`
	Asked     bool                   `json:"-"` // whether the query asks for a challenge
	ByUser    bool                   `json:"-"` // whether the user enrolls it, not the tenant
}

// FactorText is the body that updates a factor.
type FactorText struct {
	Status      field.Text `json:"status"`
	AccountName field.Text `json:"accountName"`
	Issuer      field.Text `json:"issuer"`
}

// NewFactor creates a factor of an account, and a challenge of it where the body
// or the query asks for one: either both or none.
func (s *Service) NewFactor(ctx context.Context, account id.Ref, in NewFactor) (store.Factor, error) {
	a, err := s.directory.Account(ctx, account)
	if err != nil {
		return store.Factor{}, err
	}
	f, err := s.newFactor(a, in)
	if err != nil {
		return f, err
	}
	err = s.enrol(ctx, a, func(tx *store.Tx) (err error) {
		if in.ByUser {
			if err := s.mayEnroll(ctx, tx, f); err != nil {
				return err
			}
		}
		if f.Type == store.SMS {
			if f.PhoneID, err = s.factorPhone(ctx, tx, a, in.Phone.Value); err != nil {
				return err
			}
		}
		if err := tx.InsertFactor(ctx, f); err != nil || !in.Challenge.Given() && !in.Asked {
			return err
		}
		_, err = s.issue(ctx, tx, &f, in.Challenge.Value)
		return err
	})
	if errors.Is(err, apierr.Exists) {
		err = apierr.PhoneHasFactor.Because("the phone has a factor; use that, or delete it first")
	}
	return f, err
}

// newFactor reads a factor out of a body, as far as that can be done without
// the database.
func (s *Service) newFactor(a directoryapi.Account, in NewFactor) (store.Factor, error) {
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
		if !in.Phone.Given() {
			return f, apierr.Required.Because(`phone is required, with a number or an href`)
		}
	case store.Authenticator:
		if err := unused(f.Type, map[string]bool{"phone": in.Phone.Given()}); err != nil {
			return f, err
		}
		if !in.AccountName.Present {
			in.AccountName = field.Some(a.Username)
		}
		secret := newSecret()
		f.SecretSealed, f.Secret = s.ring.Seal(secret, secretPurpose(f.ID)), secret
	default:
		return f, apierr.Required.Because("type is required: %s or %s", store.SMS, store.Authenticator)
	}
	if in.Challenge.Value.Code.Given() {
		return f, apierr.UnusedProperty.Because("a challenge of a new factor has no code yet")
	}
	return f, in.apply(&f)
}

// UpdateFactor changes what the body names. A new issuer or accountName changes the
// keyUri and the image of an authenticator, not its secret.
func (s *Service) UpdateFactor(ctx context.Context, at id.Ref, in FactorText) (store.Factor, error) {
	f, err := s.store.Factor(ctx, at.Tenant, at.ID)
	if err != nil {
		return f, err
	}
	err = s.hold(ctx, at.Tenant, f.AccountID, func(tx *store.Tx) (err error) {
		if f, err = tx.LockFactor(ctx, at.Tenant, at.ID); err != nil {
			return err
		}
		if f.Type == store.Authenticator {
			if f.Secret, err = s.ring.Open(f.SecretSealed, secretPurpose(f.ID)); err != nil {
				return err
			}
		}
		if err := in.apply(&f); err != nil {
			return err
		}
		f.ModifiedAt = s.now()
		return tx.UpdateFactor(ctx, f)
	})
	return f, err
}

// apply writes the members of a body into a factor, checks them, and renews the
// image of an authenticator.
func (in FactorText) apply(f *store.Factor) error {
	var refused field.Refusals
	refused.Enum(&f.Status, in.Status, "status", store.Enabled, store.Disabled)
	if f.Type != store.Authenticator {
		refused.Add(unused(f.Type, map[string]bool{"accountName": in.AccountName.Given(), "issuer": in.Issuer.Given()}))
		return refused.First()
	}
	refused.Add(label(in.AccountName, "accountName", &f.AccountName))
	if !in.Issuer.Null { // null is absent
		refused.Add(label(in.Issuer, "issuer", &f.Issuer))
	}
	if err := refused.First(); err != nil {
		return err
	}
	return picture(f)
}

// DeleteFactor removes a factor with its challenges, not its phone.
func (s *Service) DeleteFactor(ctx context.Context, at id.Ref) error {
	f, err := s.store.Factor(ctx, at.Tenant, at.ID)
	if err != nil {
		return err
	}
	return s.hold(ctx, at.Tenant, f.AccountID, func(tx *store.Tx) error { return tx.DeleteFactor(ctx, at.Tenant, at.ID) })
}
