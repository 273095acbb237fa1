package journey

import (
	"context"
	"errors"
	"time"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/mfaapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/services/idsite/store"
)

// checkFirstStep refuses a login whose first step has not been passed. It ends the login where
// the account may no longer log in to the application, or has a new password since.
func (j *Journey) checkFirstStep(ctx context.Context, f store.Flow) error {
	if f.AccountID.IsZero() {
		return ErrNotAllowed
	}
	access, err := j.peers.Application.CheckAccess(ctx, applicationapi.CheckAccess{
		Tenant: f.TenantID, Application: f.ApplicationID, Account: f.AccountID, Organization: f.OrganizationID,
	})
	if apierr.IsRefusal(err) {
		return ErrEnded
	}
	if err != nil {
		return err
	}
	if !sameTime(access.PasswordModifiedAt, f.PasswordModifiedAt) {
		return ErrEnded
	}
	return nil
}

// sameTime reports whether two times are equal, or both nil.
func sameTime(a, b *time.Time) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Equal(*b)
}

// checkAccount returns apierr.Forbidden for another account than the one that has passed the
// first step, and the errors of checkFirstStep.
func (l *Login) checkAccount(ctx context.Context, account id.ID) error {
	if account != l.Flow.AccountID {
		return ErrNotAllowed
	}
	return l.checkFirstStep(ctx, l.Flow)
}

// Factors returns the factors of the account that has passed the first step.
func (l *Login) Factors(ctx context.Context, account id.ID) ([]mfaapi.AccountFactor, error) {
	if err := l.checkAccount(ctx, account); err != nil {
		return nil, err
	}
	return l.FactorsOf(ctx, l.Flow)
}

// FactorsOf is Factors for what a page shows, without a look at whether the login may go on.
func (j *Journey) FactorsOf(ctx context.Context, f store.Flow) ([]mfaapi.AccountFactor, error) {
	factors, err := j.peers.MFA.FactorsOf(ctx, id.Ref{Tenant: f.TenantID, ID: f.AccountID})
	return factors.Items, err
}

// EnrollFactor creates a factor of the account. The mfa service decides whether the login may: the
// password alone adds no factor to an account that has one.
func (l *Login) EnrollFactor(ctx context.Context, account id.ID,
	in mfaapi.EnrollFactor) (mfaapi.EnrolledFactor, error) {
	if err := l.checkAccount(ctx, account); err != nil {
		return mfaapi.EnrolledFactor{}, err
	}
	f := l.Flow
	in.Tenant, in.Account, in.Types, in.SecondFactor = f.TenantID, f.AccountID, factorTypes(f), f.SteppedUp
	return l.peers.MFA.EnrollFactor(ctx, in)
}

// Challenged is a challenge of a factor after a call, and what the login has come to by it.
type Challenged struct {
	mfaapi.Challenged
	Result Result
}

// Challenge creates a challenge of a factor of the account. With a code it also answers that challenge.
func (j *Journey) Challenge(ctx context.Context, f *store.Flow, factor id.ID, code string) (Challenged, error) {
	if err := j.checkFirstStep(ctx, *f); err != nil {
		return Challenged{}, err
	}
	challenged, err := j.peers.MFA.ChallengeFactor(ctx, mfaapi.ChallengeFactor{
		Tenant: f.TenantID, Account: f.AccountID, Factor: factor, Code: code, Types: factorTypes(*f),
		SecondFactor: f.SteppedUp,
	})
	return j.completeChallenge(ctx, f, challenged, err)
}

// AnswerChallenge verifies the code of a challenge of the account.
func (j *Journey) AnswerChallenge(ctx context.Context, f *store.Flow, challenge id.ID,
	code string) (Challenged, error) {
	if err := j.checkFirstStep(ctx, *f); err != nil {
		return Challenged{}, err
	}
	challenged, err := j.peers.MFA.AnswerFactor(ctx, mfaapi.AnswerFactor{
		Tenant: f.TenantID, Account: f.AccountID, Challenge: challenge, Code: code, Types: factorTypes(*f),
		SecondFactor: f.SteppedUp,
	})
	return j.completeChallenge(ctx, f, challenged, err)
}

// completeChallenge continues a login after the answer to a challenge: a correct code ends the login or, where it
// is the code of a step-up, lets the account enroll a factor.
func (j *Journey) completeChallenge(ctx context.Context, f *store.Flow, c mfaapi.Challenged,
	err error) (Challenged, error) {
	out := Challenged{Challenged: c, Result: Result{Wants: Factor, IsNew: f.IsNew}}
	if errors.Is(err, apierr.NotFound) {
		return out, ErrNotAllowed
	}
	if err != nil || c.Status != "SUCCESS" {
		return out, err
	}
	if err := j.checkFirstStep(ctx, *f); err != nil {
		return out, err
	}
	if c.StepUp {
		return out, j.recordStepUp(ctx, f)
	}
	f.FactorPassed, f.FactorType = true, c.Type
	out.Result.Wants = Nothing
	return out, j.finish(ctx, f)
}

// recordStepUp records that the account of a login has passed a factor of a type that the login does not allow.
// It returns ErrEnded also where another account has passed the first step since.
func (j *Journey) recordStepUp(ctx context.Context, f *store.Flow) error {
	err := j.change(ctx, func(tx *store.Tx) error { return tx.RecordStepUp(ctx, *f, j.now()) })
	f.SteppedUp = err == nil
	return err
}

// factorTypes are the types of factor that complete a login. They are never none: without types
// the mfa service takes a user for logged in.
func factorTypes(f store.Flow) []string {
	if len(f.FactorTypes) == 0 {
		return mfaapi.Types
	}
	return f.FactorTypes
}
