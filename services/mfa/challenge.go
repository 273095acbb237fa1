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
	c, err := s.store.Challenge(ctx, at.Tenant, at.ID, s.now())
	if err != nil {
		return c, err
	}
	return c, s.checkOwner(ctx, at.Tenant, c.AccountID)
}

// FactorChallenges returns a page of the challenges of a factor.
func (s *Service) FactorChallenges(ctx context.Context, factor id.Ref,
	query list.Query) (list.Page[store.Challenge], error) {
	owner, err := s.ownedFactor(ctx, factor)
	if err != nil {
		return list.Page[store.Challenge]{}, err
	}
	return s.store.FactorChallenges(ctx, factor.Tenant, factor.ID, s.now(),
		query.WithParentTimes(owner.CreatedAt, owner.ModifiedAt))
}

// NewChallenge is the body that creates a challenge: the message of an SMS factor, or a
// code of an authenticator, which is then checked at once.
type NewChallenge struct {
	Message field.Text `json:"message"`
	Code    field.Text `json:"code"`
}

// UnmarshalJSON reads the members, and refuses others.
func (in *NewChallenge) UnmarshalJSON(data []byte) error {
	type members NewChallenge // without this method
	return field.Nested(data, (*members)(in), nil)
}

// CreateChallenge creates a challenge of a factor. A body with a code also answers the
// challenge; only an authenticator can have a code before there is a challenge.
func (s *Service) CreateChallenge(ctx context.Context, factor id.Ref, in NewChallenge) (store.Challenge, error) {
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
	var refusal error // for the client, although the transaction commits
	err = s.lockedTx(ctx, factor.Tenant, f.AccountID, func(tx *store.Tx) (err error) {
		if f, err = tx.LockFactor(ctx, factor.Tenant, factor.ID); err != nil {
			return err
		}
		if c, err = s.insertChallenge(ctx, tx, &f, in); err != nil || code == "" {
			return err
		}
		refusal, err = s.checkCode(ctx, tx, &f, &c, code)
		return err
	})
	return c, cmp.Or(err, refusal)
}

// insertChallenge adds a challenge of a factor, and for an SMS factor emits the event that
// sends the code. The transaction must have locked the account.
func (s *Service) insertChallenge(ctx context.Context, tx *store.Tx, f *store.Factor,
	in NewChallenge) (store.Challenge, error) {
	now := s.now()
	c := store.Challenge{
		TenantID: f.TenantID, ID: id.New(now), AccountID: f.AccountID, FactorID: f.ID,
		Status: store.Created, ExpiresAt: now.Add(challengeTTL), CreatedAt: now, ModifiedAt: now,
	}
	if f.Status != store.Enabled {
		return c, apierr.FactorDisabled.Because("the factor is disabled")
	}
	if err := s.checkAttemptLimits(ctx, tx, *f); err != nil {
		return c, err
	}
	switch f.Type {
	case store.SMS:
		if err := refuseUnusedProperties(f.Type, map[string]bool{"code": in.Code.Given()}); err != nil {
			return c, err
		}
		if err := s.emitSMS(ctx, tx, *f, &c, in.Message); err != nil {
			return c, err
		}
	case store.Authenticator:
		if err := refuseUnusedProperties(f.Type, map[string]bool{"message": in.Message.Given()}); err != nil {
			return c, err
		}
	default:
		return c, errUnknownType(f.Type)
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

// AnswerChallenge verifies the code that a user has entered. A wrong code is no error: the
// challenge becomes FAILED and may be answered again. The first answer after the challenge
// has expired returns apierr.CodeExpired. AnswerChallenge also returns ChallengeFinished for
// a challenge in a final state, ChallengeFailures when the attempts are used up (limits.go),
// and FactorDisabled or PhoneDisabled.
func (s *Service) AnswerChallenge(ctx context.Context, at id.Ref, in Answer) (store.Challenge, error) {
	code, err := readCode(in.Code)
	if err != nil {
		return store.Challenge{}, err
	}
	return s.answerChallenge(ctx, at, code)
}

// answerChallenge is AnswerChallenge for a code in any form: one that is not made of digits
// is a wrong code.
func (s *Service) answerChallenge(ctx context.Context, at id.Ref, code string) (store.Challenge, error) {
	c, err := s.store.Challenge(ctx, at.Tenant, at.ID, s.now())
	if err != nil {
		return c, err
	}
	var refusal error // for the client, although the transaction commits
	err = s.lockedTx(ctx, at.Tenant, c.AccountID, func(tx *store.Tx) (err error) {
		if c, err = tx.LockChallenge(ctx, at.Tenant, at.ID, s.now()); err != nil {
			return err
		}
		f, err := tx.LockFactor(ctx, at.Tenant, c.FactorID)
		if err != nil {
			return err
		}
		if c.HasExpired {
			refusal = apierr.CodeExpired.Because("the code expired at %s; create another challenge",
				c.ExpiresAt.UTC().Format(time.RFC3339))
			return s.setStatus(ctx, tx, &c, store.Expired)
		}
		if err := s.checkAnswerable(ctx, tx, f, c); err != nil {
			return err
		}
		refusal, err = s.checkCode(ctx, tx, &f, &c, code)
		return err
	})
	return c, cmp.Or(err, refusal)
}

// checkAnswerable returns the reason for which a challenge accepts no answer now, or nil.
func (s *Service) checkAnswerable(ctx context.Context, tx *store.Tx, f store.Factor, c store.Challenge) error {
	switch {
	case isFinal(c.Status):
		return apierr.ChallengeFinished.Because("the challenge is %s; create another one", c.Status)
	case c.Failures >= maxChallengeFailures:
		return apierr.ChallengeFailures.Because("%d codes were wrong; create another challenge", c.Failures)
	case f.Status != store.Enabled:
		return apierr.FactorDisabled.Because("the factor is disabled")
	}
	if f.Type == store.SMS {
		phone, err := tx.LockPhone(ctx, f.TenantID, f.PhoneID)
		if err != nil {
			return err
		}
		if err := checkPhoneEnabled(phone); err != nil {
			return err
		}
	}
	return s.checkAttemptLimits(ctx, tx, f)
}

// checkCode verifies a code and writes the result: the new state of the challenge, and the
// counters of wrong codes. A code that cannot be verified, whatever it is, ends the challenge
// as ERROR. That is the refusal: an error for the client which, unlike err, must not roll the
// transaction back.
func (s *Service) checkCode(ctx context.Context, tx *store.Tx, f *store.Factor, c *store.Challenge,
	code string) (refusal, err error) {
	correct, cause := s.isCorrectCode(f, *c, code)
	switch {
	case cause != nil:
		return fmt.Errorf("%w (%w)", apierr.CodeValidation, cause), s.setStatus(ctx, tx, c, store.Error)
	case correct:
		if err := s.markVerified(ctx, tx, f); err != nil {
			return nil, err
		}
		return nil, s.setStatus(ctx, tx, c, store.Success)
	}
	c.Failures++
	if err := s.countWrongCode(ctx, tx, *f); err != nil {
		return nil, err
	}
	return nil, s.setStatus(ctx, tx, c, store.Failed)
}

// isCorrectCode reports whether a code is the one that the challenge asks for. It notes in
// the factor which code of an authenticator was used, so that no code is accepted twice.
func (s *Service) isCorrectCode(f *store.Factor, c store.Challenge, code string) (bool, error) {
	switch f.Type {
	case store.SMS:
		return s.isSentCode(c, code)
	case store.Authenticator:
		return s.isCorrectTOTP(f, code)
	}
	return false, errUnknownType(f.Type)
}

// errUnknownType is the error for a type of factor that this release does not have.
func errUnknownType(kind string) error { return fmt.Errorf("the factor has the unknown type %q", kind) }

// isCorrectTOTP reports whether a code is one of an authenticator that is valid now and was
// not used before (totp.go), and notes its time step in the factor.
func (s *Service) isCorrectTOTP(f *store.Factor, code string) (bool, error) {
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

// markVerified marks a factor and its phone as verified. A factor that was not is added to the account
// by that.
func (s *Service) markVerified(ctx context.Context, tx *store.Tx, f *store.Factor) error {
	if f.VerificationStatus != store.Verified {
		f.VerificationStatus, f.ModifiedAt = store.Verified, s.now()
		if err := emitFactorChanged(ctx, tx, *f, false); err != nil {
			return err
		}
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

// setStatus moves a challenge to another state. It fails for a transition that
// challengestate.go does not allow.
func (s *Service) setStatus(ctx context.Context, tx *store.Tx, c *store.Challenge, to string) error {
	if !canTransition(c.Status, to) {
		return fmt.Errorf("a challenge that is %s cannot become %s", c.Status, to)
	}
	c.Status, c.HasExpired, c.ModifiedAt = to, false, s.now()
	return tx.UpdateChallenge(ctx, *c)
}

// readCode reads the code of a body, which must consist of digits.
func readCode(in field.Text) (string, error) {
	text, err := field.Required(in, "code", 255)
	if err != nil {
		return "", err
	}
	code := field.Code(text)
	if code == "" || strings.Trim(code, "0123456789") != "" {
		return "", apierr.Invalid.Because("code must consist of digits")
	}
	return code, nil
}
