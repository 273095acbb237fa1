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

// homeRegion is the region of a number without a plus sign
// (docs/interface/multi-factor.md#phones).
const homeRegion = "US"

// Phone returns a phone, or apierr.NotFound.
func (s *Service) Phone(ctx context.Context, at id.Ref) (store.Phone, error) {
	return s.store.Phone(ctx, at.Tenant, at.ID)
}

// AccountPhones returns a page of the phones of an account.
func (s *Service) AccountPhones(ctx context.Context, account id.Ref, query list.Query) (list.Page[store.Phone], error) {
	return list.PageOf(ctx, s.directory.Account, s.store.AccountPhones, account, query)
}

// TenantPhones returns a page of all the phones of a tenant. A tenant sees no
// other one: apierr.NotFound.
func (s *Service) TenantPhones(ctx context.Context, tenant id.Ref, query list.Query) (list.Page[store.Phone], error) {
	return list.PageOf(ctx, s.directory.Tenant, s.store.TenantPhones, tenant, query)
}

// PhoneText is the body that creates or updates a phone.
type PhoneText struct {
	Number             field.Text `json:"number"`
	Name               field.Text `json:"name"`
	Description        field.Text `json:"description"`
	Status             field.Text `json:"status"`
	VerificationStatus field.Text `json:"verificationStatus"`
}

// NewPhone creates a phone of an account.
func (s *Service) NewPhone(ctx context.Context, account id.Ref, in PhoneText) (store.Phone, error) {
	a, err := s.directory.Account(ctx, account)
	if err != nil {
		return store.Phone{}, err
	}
	p, err := s.newPhone(a, in)
	if err != nil {
		return p, err
	}
	err = s.enrol(ctx, a, func(tx *store.Tx) error { return tx.InsertPhone(ctx, p) })
	return p, numberTaken(err)
}

func (s *Service) newPhone(a directoryapi.Account, in PhoneText) (store.Phone, error) {
	now := s.now()
	p := store.Phone{
		TenantID: a.TenantID, ID: id.New(now), AccountID: a.ID,
		Status: store.Enabled, VerificationStatus: store.Unverified, CreatedAt: now, ModifiedAt: now,
	}
	return p, in.apply(&p, true)
}

// UpdatePhone changes what the body names. The number of a phone that is verified,
// or that the same request verifies, cannot change: apierr.PhoneNumberFixed. A new
// number ends the open challenges, whose codes went to the former one.
func (s *Service) UpdatePhone(ctx context.Context, at id.Ref, in PhoneText) (store.Phone, error) {
	p, err := s.store.Phone(ctx, at.Tenant, at.ID)
	if err != nil {
		return p, err
	}
	err = s.hold(ctx, at.Tenant, p.AccountID, func(tx *store.Tx) error {
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
	return p, numberTaken(err)
}

// DeletePhone removes a phone with its factor and that factor's challenges.
func (s *Service) DeletePhone(ctx context.Context, at id.Ref) error {
	p, err := s.store.Phone(ctx, at.Tenant, at.ID)
	if err != nil {
		return err
	}
	return s.hold(ctx, at.Tenant, p.AccountID, func(tx *store.Tx) error { return tx.DeletePhone(ctx, at.Tenant, at.ID) })
}

// numberTaken replaces apierr.Exists by the code for a number.
func numberTaken(err error) error {
	if errors.Is(err, apierr.Exists) {
		return apierr.PhoneNumberExists
	}
	return err
}

// apply writes the members of a body into a phone and checks them.
func (in PhoneText) apply(p *store.Phone, isNew bool) (err error) {
	var refused field.Refusals
	if in.Number.Present || isNew {
		p.Number, err = readNumber(in.Number)
		refused.Add(err)
	}
	refused.Optional(&p.Name, in.Name, "name", 255)
	refused.Optional(&p.Description, in.Description, "description", 1000)
	refused.Enum(&p.Status, in.Status, "status", store.Enabled, store.Disabled)
	refused.Enum(&p.VerificationStatus, in.VerificationStatus, "verificationStatus", store.Verified, store.Unverified)
	return refused.First()
}

// readNumber reads a telephone number in any usual notation and returns it in
// E.164. A number that does not exist, one with an extension (which no text message
// reaches) and a premium-rate number are apierr.PhoneNumberInvalid.
func readNumber(in field.Text) (string, error) {
	text, err := field.Required(in, "number", 255)
	if err != nil {
		return "", err
	}
	number, err := phonenumbers.Parse(text, homeRegion)
	if err != nil || !phonenumbers.IsValidNumber(number) || number.GetExtension() != "" ||
		phonenumbers.GetNumberType(number) == phonenumbers.PREMIUM_RATE {
		return "", apierr.PhoneNumberInvalid
	}
	return phonenumbers.Format(number, phonenumbers.E164), nil
}

// country returns the region of a number in E.164: "US", or "" where it has none.
func country(number string) string {
	parsed, err := phonenumbers.Parse(number, homeRegion)
	if err != nil {
		return ""
	}
	return phonenumbers.GetRegionCodeForNumber(parsed)
}
