package mfa

import (
	"context"
	"errors"

	"github.com/nyaruka/phonenumbers"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/list"
	"github.com/doorward/doorward/services/mfa/store"
)

// defaultRegion is the region of a telephone number without a plus sign
// (docs/interface/multi-factor.md#phones).
const defaultRegion = "US"

// Phone returns a phone, or apierr.NotFound.
func (s *Service) Phone(ctx context.Context, at id.Ref) (store.Phone, error) {
	p, err := s.store.Phone(ctx, at.Tenant, at.ID)
	if err != nil {
		return p, err
	}
	return p, s.checkOwner(ctx, at.Tenant, p.AccountID)
}

// AccountPhones returns a page of the phones of an account.
func (s *Service) AccountPhones(ctx context.Context, account id.Ref, query list.Query) (list.Page[store.Phone], error) {
	return list.PageOf(ctx, s.directory.Account, s.store.AccountPhones, account, query)
}

// TenantPhones returns a page of all phones of a tenant. It returns apierr.NotFound for another
// tenant than that of the caller. The phones of an account that was deleted are not among them.
func (s *Service) TenantPhones(ctx context.Context, tenant id.Ref, query list.Query) (list.Page[store.Phone], error) {
	read := func() (list.Page[store.Phone], error) {
		return list.PageOf(ctx, s.directory.Tenant, s.store.TenantPhones, tenant, query)
	}
	return list.WithoutDeleted(read, func(p store.Phone) id.ID { return p.AccountID },
		func(p store.Phone) error { return s.checkOwner(ctx, tenant.Tenant, p.AccountID) },
		func(deleted []id.ID) error { return s.removeAccounts(ctx, tenant.Tenant, deleted) })
}

// PhoneBody is the body that creates or updates a phone.
type PhoneBody struct {
	Number             field.Text `json:"number"`
	Name               field.Text `json:"name"`
	Description        field.Text `json:"description"`
	Status             field.Text `json:"status"`
	VerificationStatus field.Text `json:"verificationStatus"`
}

// CreatePhone creates a phone of an account.
func (s *Service) CreatePhone(ctx context.Context, account id.Ref, in PhoneBody) (store.Phone, error) {
	a, err := s.directory.Account(ctx, account)
	if err != nil {
		return store.Phone{}, err
	}
	p, err := s.readNewPhone(a, in)
	if err != nil {
		return p, err
	}
	err = s.enrollTx(ctx, a, func(tx *store.Tx) error { return tx.InsertPhone(ctx, p) })
	return p, asPhoneNumberExists(err)
}

// readNewPhone makes a phone from a body and checks its members.
func (s *Service) readNewPhone(a directoryapi.Account, in PhoneBody) (store.Phone, error) {
	now := s.now()
	p := store.Phone{
		TenantID: a.TenantID, ID: id.New(now), AccountID: a.ID,
		Status: store.Enabled, VerificationStatus: store.Unverified, CreatedAt: now, ModifiedAt: now,
	}
	return p, in.apply(&p, true)
}

// UpdatePhone changes what the body names. The number of a phone that is verified, or that
// the same request verifies, cannot change: apierr.PhoneNumberFixed. A new number expires the
// open challenges, because their codes went to the old number.
func (s *Service) UpdatePhone(ctx context.Context, at id.Ref, in PhoneBody) (store.Phone, error) {
	p, err := s.Phone(ctx, at)
	if err != nil {
		return p, err
	}
	err = s.lockedTx(ctx, at.Tenant, p.AccountID, func(tx *store.Tx) error {
		before, err := tx.LockPhone(ctx, at.Tenant, at.ID)
		if err != nil {
			return err
		}
		p = before
		if err := in.apply(&p, false); err != nil {
			return err
		}
		p.ModifiedAt = s.now()
		if p.Number != before.Number {
			if before.VerificationStatus == store.Verified || p.VerificationStatus == store.Verified {
				return apierr.PhoneNumberFixed
			}
			if err := tx.ExpireChallenges(ctx, at.Tenant, at.ID, p.ModifiedAt); err != nil {
				return err
			}
		}
		return tx.UpdatePhone(ctx, p)
	})
	return p, asPhoneNumberExists(err)
}

// DeletePhone removes a phone with its factor and that factor's challenges.
func (s *Service) DeletePhone(ctx context.Context, at id.Ref) error {
	p, err := s.store.Phone(ctx, at.Tenant, at.ID)
	if err != nil {
		return err
	}
	return s.lockedTx(ctx, at.Tenant, p.AccountID, func(tx *store.Tx) error {
		f, err := tx.LockFactorOfPhone(ctx, at.Tenant, at.ID)
		if errors.Is(err, apierr.NotFound) {
			return tx.DeletePhone(ctx, at.Tenant, at.ID)
		}
		if err != nil {
			return err
		}
		if err := emitFactorChanged(ctx, tx, f, true); err != nil {
			return err
		}
		return tx.DeletePhone(ctx, at.Tenant, at.ID)
	})
}

// asPhoneNumberExists replaces apierr.Exists by apierr.PhoneNumberExists.
func asPhoneNumberExists(err error) error {
	if errors.Is(err, apierr.Exists) {
		return apierr.PhoneNumberExists
	}
	return err
}

// apply checks the members of a body and writes them into a phone.
func (in PhoneBody) apply(p *store.Phone, isNew bool) error {
	var errs field.Errors
	errs.Set(&p.Number, in.Number, isNew, readNumber)
	errs.Optional(&p.Name, in.Name, "name", 255)
	errs.Optional(&p.Description, in.Description, "description", 1000)
	errs.Enum(&p.Status, in.Status.NullIsAbsent(isNew), "status", store.Enabled, store.Disabled)
	errs.Enum(&p.VerificationStatus, in.VerificationStatus.NullIsAbsent(isNew), "verificationStatus", store.Verified,
		store.Unverified)
	return errs.First()
}

// readNumber validates a telephone number in any usual notation and returns it in E.164.
// It returns apierr.PhoneNumberInvalid for a number that does not exist, a number with an
// extension, to which no text message can be sent, and a premium-rate number.
func readNumber(in field.Text) (string, error) {
	text, err := field.Required(in, "number", 255)
	if err != nil {
		return "", err
	}
	number, err := phonenumbers.Parse(field.PhoneNumber(text), defaultRegion)
	if err != nil || !phonenumbers.IsValidNumber(number) || number.GetExtension() != "" ||
		phonenumbers.GetNumberType(number) == phonenumbers.PREMIUM_RATE {
		return "", apierr.PhoneNumberInvalid
	}
	return phonenumbers.Format(number, phonenumbers.E164), nil
}

// countryOf returns the country of a telephone number in E.164, such as "US", or "" for a
// number of no country.
func countryOf(number string) string {
	parsed, err := phonenumbers.Parse(number, defaultRegion)
	if err != nil {
		return ""
	}
	return phonenumbers.GetRegionCodeForNumber(parsed)
}
