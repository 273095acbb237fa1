package mfa

import (
	"context"
	"errors"
	"strings"

	"github.com/doorward/doorward/pkg/api/mfaapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/services/mfa/store"
)

var _ mfaapi.Contract = (*Service)(nil)

// maxSelectable is how many factors a login offers at most.
const maxSelectable = 20

// storedTypes maps the names that clients use for the types of factor to those of the store.
var storedTypes = map[string]string{mfaapi.SMS: store.SMS, mfaapi.Authenticator: store.Authenticator}

// BeginSecondStep begins the second step of a login, multi-factor authentication
// (docs/interface/oauth.md#second-factors). It offers the factors that are enabled and
// verified, and whose phone is too: a phone whose number was changed is not verified. A
// factor that has used up its attempts is left out where there is another. Whether a login
// needs a second step is decided in services/oauth/secondstep.go. Where the account has usable
// factors of other types only, it offers these as a step-up (factorrule.go).
func (s *Service) BeginSecondStep(ctx context.Context, in mfaapi.BeginSecondStep) (mfaapi.SecondStep, error) {
	if len(in.Types) == 0 {
		in.Types = mfaapi.Types
	}
	for _, name := range in.Types {
		if storedTypes[name] == "" {
			return mfaapi.SecondStep{}, apierr.Invalid.Because("%q is not a type of factor; there are %s and %s", name,
				mfaapi.SMS, mfaapi.Authenticator)
		}
	}
	account, err := s.directory.Account(ctx, id.Ref{Tenant: in.Tenant, ID: in.Account})
	if err != nil {
		return mfaapi.SecondStep{}, err
	}
	login := loginState{
		Application: in.Application, Account: in.Account, Organization: in.Organization, Types: in.Types,
		PasswordSetAt: passwordSetAt(account),
	}
	var out mfaapi.SecondStep
	accountLocked := false // there is a row of the account to lock: it has, or had, a phone or a factor
	err = s.lockedTx(ctx, in.Tenant, in.Account, func(tx *store.Tx) error {
		accountLocked = true
		selectable, err := s.selectableFactors(ctx, tx, in.Tenant, in.Account, login.storedTypes())
		if err == nil && len(selectable) == 0 {
			selectable, err = s.selectableFactors(ctx, tx, in.Tenant, in.Account, store.Types) // a step-up
		}
		if err != nil || len(selectable) == 0 {
			return err
		}
		out, err = s.challengeSelectable(ctx, tx, login, selectable)
		return err
	})
	if err != nil && (accountLocked || !errors.Is(err, apierr.NotFound)) {
		return mfaapi.SecondStep{}, err
	}
	if out.Action == "" {
		return s.demandEnrollment(in.Tenant, login), nil
	}
	return out, nil
}

// demandEnrollment returns the second step of a login whose user has to enroll a factor.
func (s *Service) demandEnrollment(tenant id.ID, login loginState) mfaapi.SecondStep {
	return mfaapi.SecondStep{Action: mfaapi.Enroll, State: s.signState(tenant, login), AllowedFactorTypes: login.Types}
}

// selectableFactors returns the usable factors of an account that have attempts left, or
// apierr.ChallengeFailures where all of them have used up their attempts.
func (s *Service) selectableFactors(ctx context.Context, tx *store.Tx, tenant, account id.ID,
	types []string) ([]store.UsableFactor, error) {
	usable, err := tx.UsableFactors(ctx, tenant, account, types, maxSelectable)
	if err != nil {
		return nil, err
	}
	var selectable []store.UsableFactor
	for _, f := range usable {
		switch attemptErr := s.checkAttemptLimits(ctx, tx, f.Factor); {
		case attemptErr == nil:
			selectable = append(selectable, f)
		case errors.Is(attemptErr, apierr.ChallengeFailures):
			err = attemptErr
		default:
			return nil, attemptErr
		}
	}
	if len(selectable) > 0 {
		return selectable, nil
	}
	return nil, err
}

// challengeSelectable creates the challenges that need no choice of the user: that of the
// only factor, and those of authenticators, which send nothing. Each factor gets a state of
// its own for its one challenge, so that a state is accepted once.
func (s *Service) challengeSelectable(ctx context.Context, tx *store.Tx, login loginState,
	selectable []store.UsableFactor) (
	mfaapi.SecondStep, error) {
	out := mfaapi.SecondStep{Action: mfaapi.Select}
	if len(selectable) == 1 {
		out.Action = mfaapi.Challenge
	}
	for i := range selectable {
		f := &selectable[i]
		login.Factor, login.Challenge = f.ID, id.ID{}
		if len(selectable) == 1 || f.Type == store.Authenticator {
			c, err := s.insertChallenge(ctx, tx, &f.Factor, NewChallenge{})
			if err != nil {
				return out, err
			}
			login.Challenge = c.ID
		}
		shown := mfaapi.Factor{Type: strings.ToLower(f.Type), Hint: factorHint(*f),
			State: s.signState(f.TenantID, login)}
		if out.Action == mfaapi.Challenge {
			out.State, shown.State = shown.State, ""
		}
		out.Factors = append(out.Factors, shown)
	}
	return out, nil
}

// factorHint is a text by which a user recognises a factor and which reveals little of that:
// the end of the telephone number, or the issuer. It is never empty, because clients select
// a factor by its hint.
func factorHint(f store.UsableFactor) string {
	switch {
	case f.Type == store.SMS:
		return "xxx-xxx-" + f.Number[max(0, len(f.Number)-4):]
	case f.Issuer != nil:
		return *f.Issuer
	}
	return *f.AccountName
}

// VerifySecondStep verifies the code of a second step and returns the account that is logged in,
// or after the code of a step-up (factorrule.go) the demand to enroll a factor. Callers with an API
// key may name a challenge in place of a state: they must have checked the first step themselves.
func (s *Service) VerifySecondStep(ctx context.Context, in mfaapi.VerifySecondStep) (mfaapi.CompletedLogin, error) {
	if in.State == "" {
		ref, ok := s.base.Parse(in.Challenge.Href)
		if !ok || ref.Kind != "challenges" {
			return mfaapi.CompletedLogin{},
				apierr.Reference.Because("challenge: there is nothing at %q", in.Challenge.Href)
		}
		c, err := s.verifyLoginChallenge(ctx, id.Ref{Tenant: in.Tenant, ID: ref.ID}, in.Code)
		return mfaapi.CompletedLogin{Account: c.AccountID}, err
	}
	login, err := s.verifyApplicationState(ctx, in.Tenant, in.Application, in.State)
	switch {
	case err != nil:
		return mfaapi.CompletedLogin{}, err
	case login.LoggedIn:
		return mfaapi.CompletedLogin{}, apierr.Reference.Because("the state is of a user who was logged in already")
	case login.Challenge.IsZero():
		return mfaapi.CompletedLogin{},
			apierr.Reference.Because("the state has no challenge yet; enrol a factor or ask for a challenge with it")
	}
	f, err := s.mayUse(ctx, in.Tenant, login, login.Factor)
	if err != nil {
		return mfaapi.CompletedLogin{}, err
	}
	if _, err = s.verifyLoginChallenge(ctx, id.Ref{Tenant: in.Tenant, ID: login.Challenge}, in.Code); err != nil {
		return mfaapi.CompletedLogin{}, err
	}
	if !login.allows(f.Type) {
		next := s.demandEnrollment(in.Tenant, login.afterFactor(f.Type))
		return mfaapi.CompletedLogin{Next: &next}, nil
	}
	return mfaapi.CompletedLogin{Account: login.Account, Organization: login.Organization}, nil
}

// verifyLoginChallenge answers a challenge. A text that is not made of digits is a wrong code too,
// and is counted as a failed attempt.
func (s *Service) verifyLoginChallenge(ctx context.Context, at id.Ref, code string) (store.Challenge, error) {
	c, err := s.answerChallenge(ctx, at, field.Code(code))
	switch {
	case errors.Is(err, apierr.NotFound):
		return store.Challenge{}, apierr.Reference.Because("there is no such challenge")
	case err != nil:
		return store.Challenge{}, err
	case c.Status != store.Success:
		return store.Challenge{}, apierr.CodeWrong.Because("the code is not the one that the challenge asks for")
	}
	return c, nil
}
