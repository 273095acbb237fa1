package mfa

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/list"
	"github.com/doorward/doorward/services/mfa/store"
)

// challengeTTL is how long a challenge of either type is open.
const challengeTTL = 300 * time.Second

// Challenge returns a challenge, or apierr.NotFound.
func (s *Service) Challenge(ctx context.Context, at id.Ref) (store.Challenge, error) {
	return s.store.Challenge(ctx, at.Tenant, at.ID, s.now())
}

// FactorChallenges returns a page of the challenges of a factor.
func (s *Service) FactorChallenges(ctx context.Context, factor id.Ref, query list.Query) (list.Page[store.Challenge], error) {
	owner, err := s.store.Factor(ctx, factor.Tenant, factor.ID)
	if err != nil {
		return list.Page[store.Challenge]{}, err
	}
	return s.store.FactorChallenges(ctx, factor.Tenant, factor.ID, s.now(), query.Of(owner.CreatedAt, owner.ModifiedAt))
}

// NewChallenge is the body that creates a challenge: the message of an SMS
// factor, or the code of an authenticator that is to be checked at once.
type NewChallenge struct {
	Message field.Text `json:"message"`
	Code    field.Text `json:"code"`
}

// UnmarshalJSON reads the members, and refuses others.
func (in *NewChallenge) UnmarshalJSON(data []byte) error {
	type members NewChallenge // without this method
	return field.Nested(data, (*members)(in), nil)
}

// NewChallenge creates a challenge of a factor. With a code, which only an
// authenticator can have yet, it is answered at once.
func (s *Service) NewChallenge(ctx context.Context, factor id.Ref, in NewChallenge) (store.Challenge, error) {
	code := ""
	if in.Code.Given() { // null is absent
		var err error
		if code, err = readCode(in.Code); err != nil {
			return store.Challenge{}, err
		}
	}
	f, err := s.store.Factor(ctx, factor.Tenant, factor.ID)
	if err != nil {
		return store.Challenge{}, err
	}
	var c store.Challenge
	var fault error // of a transaction that is committed
	err = s.hold(ctx, factor.Tenant, f.AccountID, func(tx *store.Tx) (err error) {
		if f, err = tx.LockFactor(ctx, factor.Tenant, factor.ID); err != nil {
			return err
		}
		if c, err = s.issue(ctx, tx, &f, in); err != nil || code == "" {
			return err
		}
		fault, err = s.try(ctx, tx, &f, &c, code)
		return err
	})
	return c, cmp.Or(err, fault)
}

// issue creates a challenge of a factor whose account the transaction has locked.
func (s *Service) issue(ctx context.Context, tx *store.Tx, f *store.Factor, in NewChallenge) (store.Challenge, error) {
	now := s.now()
	c := store.Challenge{
		TenantID: f.TenantID, ID: id.New(now), AccountID: f.AccountID, FactorID: f.ID,
		Status: store.Created, ExpiresAt: now.Add(challengeTTL), CreatedAt: now, ModifiedAt: now,
	}
	if f.Status != store.Enabled {
		return c, apierr.FactorDisabled.Because("the factor is disabled")
	}
	if err := s.mayTry(ctx, tx, *f); err != nil {
		return c, err
	}
	switch f.Type {
	case store.SMS:
		if err := unused(f.Type, map[string]bool{"code": in.Code.Given()}); err != nil {
			return c, err
		}
		if err := s.send(ctx, tx, *f, &c, in.Message); err != nil {
			return c, err
		}
	default:
		if err := unused(f.Type, map[string]bool{"message": in.Message.Given()}); err != nil {
			return c, err
		}
	}
	f.ChallengeID = c.ID
	if err := tx.InsertChallenge(ctx, c); err != nil {
		return c, err
	}
	return c, tx.UpdateFactor(ctx, *f)
}

// Answer is the body that answers a challenge.
type Answer struct {
	Code field.Text `json:"code"`
}

// AnswerChallenge compares a code with the one that a challenge asks for. A
// wrong code is no error: the challenge is FAILED, and may be answered again. It
// returns apierr.CodeExpired once, when the time of the challenge is over,
// ChallengeFinished for one that has ended, ChallengeFailures when the tries are
// used up, and FactorDisabled or PhoneDisabled.
func (s *Service) AnswerChallenge(ctx context.Context, at id.Ref, in Answer) (store.Challenge, error) {
	code, err := readCode(in.Code)
	if err != nil {
		return store.Challenge{}, err
	}
	return s.answer(ctx, at, code)
}

// answer is AnswerChallenge for a code of any form.
func (s *Service) answer(ctx context.Context, at id.Ref, code string) (store.Challenge, error) {
	c, err := s.store.Challenge(ctx, at.Tenant, at.ID, s.now())
	if err != nil {
		return c, err
	}
	var fault error // of a transaction that is committed
	err = s.hold(ctx, at.Tenant, c.AccountID, func(tx *store.Tx) (err error) {
		if c, err = tx.LockChallenge(ctx, at.Tenant, at.ID, s.now()); err != nil {
			return err
		}
		f, err := tx.LockFactor(ctx, at.Tenant, c.FactorID)
		if err != nil {
			return err
		}
		if c.Late {
			fault = apierr.CodeExpired.Because("the code expired at %s; create another challenge", c.ExpiresAt.UTC().Format(time.RFC3339))
			return s.move(ctx, tx, &c, store.Expired)
		}
		if err := s.answerable(ctx, tx, f, c); err != nil {
			return err
		}
		fault, err = s.try(ctx, tx, &f, &c, code)
		return err
	})
	return c, cmp.Or(err, fault)
}

// answerable returns why a challenge accepts no answer.
func (s *Service) answerable(ctx context.Context, tx *store.Tx, f store.Factor, c store.Challenge) error {
	switch {
	case isFinal(c.Status):
		return apierr.ChallengeFinished.Because("the challenge is %s; create another one", c.Status)
	case c.Failures >= challengeFailures:
		return apierr.ChallengeFailures.Because("%d codes were wrong; create another challenge", c.Failures)
	case f.Status != store.Enabled:
		return apierr.FactorDisabled.Because("the factor is disabled")
	}
	if f.Type == store.SMS {
		phone, err := tx.LockPhone(ctx, f.TenantID, f.PhoneID)
		if err != nil {
			return err
		}
		if err := usable(phone); err != nil {
			return err
		}
	}
	return s.mayTry(ctx, tx, f)
}

// try compares a code and records the result. A fault that does not depend on the
// code is returned apart from err: it ends the challenge, and that is committed.
func (s *Service) try(ctx context.Context, tx *store.Tx, f *store.Factor, c *store.Challenge, code string) (fault, err error) {
	right, fault := s.isRight(f, *c, code)
	switch {
	case fault != nil:
		return fmt.Errorf("%w (%w)", apierr.CodeValidation, fault), s.move(ctx, tx, c, store.Error)
	case right:
		if err := s.verify(ctx, tx, f); err != nil {
			return nil, err
		}
		return nil, s.move(ctx, tx, c, store.Success)
	}
	c.Failures++
	if err := s.countFailure(ctx, tx, *f); err != nil {
		return nil, err
	}
	return nil, s.move(ctx, tx, c, store.Failed)
}

// isRight reports whether a code is the one of the challenge, and records in the
// factor that an authenticator's code was used.
func (s *Service) isRight(f *store.Factor, c store.Challenge, code string) (bool, error) {
	if f.Type == store.SMS {
		return s.isSent(c, code)
	}
	secret, err := s.ring.Open(f.SecretSealed, secretPurpose(f.ID))
	if err != nil {
		return false, err
	}
	step, err := acceptedStep(secret, code, s.now(), f.LastStep)
	if step > 0 {
		f.LastStep = step
	}
	return step > 0, err
}

// verify marks a factor and its phone as verified.
func (s *Service) verify(ctx context.Context, tx *store.Tx, f *store.Factor) error {
	if f.VerificationStatus != store.Verified {
		f.VerificationStatus, f.ModifiedAt = store.Verified, s.now()
	}
	if err := tx.UpdateFactor(ctx, *f); err != nil || f.Type != store.SMS {
		return err
	}
	phone, err := tx.LockPhone(ctx, f.TenantID, f.PhoneID)
	if err != nil || phone.VerificationStatus == store.Verified {
		return err
	}
	phone.VerificationStatus, phone.ModifiedAt = store.Verified, s.now()
	return tx.UpdatePhone(ctx, phone)
}

// move changes the state of a challenge.
func (s *Service) move(ctx context.Context, tx *store.Tx, c *store.Challenge, to string) error {
	if !follows(c.Status, to) {
		return fmt.Errorf("a challenge that is %s cannot become %s", c.Status, to)
	}
	c.Status, c.Late, c.ModifiedAt = to, false, s.now()
	return tx.UpdateChallenge(ctx, *c)
}

// readCode reads a code: digits only.
func readCode(in field.Text) (string, error) {
	code, err := field.Required(in, "code", 255)
	if err != nil {
		return "", err
	}
	if strings.Trim(code, "0123456789") != "" {
		return "", apierr.Invalid.Because("code must consist of digits")
	}
	return code, nil
}
