package mfa

import (
	"context"
	"errors"
	"strings"

	"github.com/doorward/doorward/pkg/api/mfaapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/services/mfa/store"
)

var _ mfaapi.Contract = (*Service)(nil)

// maxOffered limits the factors that a user can select from.
const maxOffered = 20

// typesOf is the type of a factor for the name that it has in a login.
var typesOf = map[string]string{mfaapi.SMS: store.SMS, mfaapi.Authenticator: store.Authenticator}

// BeginSecondStep begins the second step of a login
// (docs/interface/oauth.md#second-factors). It offers the factors that are enabled
// and verified, as is their phone: a number that was changed is not verified. A
// factor that has used up its attempts is left out where there is another.
func (s *Service) BeginSecondStep(ctx context.Context, in mfaapi.BeginSecondStep) (mfaapi.SecondStep, error) {
	if len(in.Types) == 0 {
		in.Types = []string{mfaapi.SMS, mfaapi.Authenticator}
	}
	types := make([]string, len(in.Types))
	for i, name := range in.Types {
		types[i] = typesOf[name]
		if types[i] == "" {
			return mfaapi.SecondStep{}, apierr.Invalid.Because("%q is not a type of factor; there are %s and %s", name, mfaapi.SMS,
				mfaapi.Authenticator)
		}
	}
	account, err := s.directory.Account(ctx, id.Ref{Tenant: in.Tenant, ID: in.Account})
	if err != nil {
		return mfaapi.SecondStep{}, err
	}
	begun := step{
		Application: in.Application, Account: in.Account, Organization: in.Organization, Types: in.Types, Password: passwordOf(account),
	}
	var out mfaapi.SecondStep
	known := false // whether the account has phones or factors
	err = s.hold(ctx, in.Tenant, in.Account, func(tx *store.Tx) error {
		known = true
		offered, err := s.offered(ctx, tx, in.Tenant, in.Account, types)
		if err != nil || len(offered) == 0 {
			return err
		}
		out, err = s.offer(ctx, tx, begun, offered)
		return err
	})
	if err != nil && (known || !errors.Is(err, apierr.NotFound)) {
		return mfaapi.SecondStep{}, err
	}
	if out.Action == "" {
		return mfaapi.SecondStep{Action: mfaapi.Enroll, State: s.signStep(in.Tenant, begun), AllowedFactorTypes: in.Types}, nil
	}
	return out, nil
}

// offered returns the factors that a user can choose from, or
// apierr.ChallengeFailures where all have used up their attempts.
func (s *Service) offered(ctx context.Context, tx *store.Tx, tenant, account id.ID, types []string) ([]store.UsableFactor, error) {
	usable, err := tx.UsableFactors(ctx, tenant, account, types, maxOffered)
	if err != nil {
		return nil, err
	}
	var offered []store.UsableFactor
	for _, f := range usable {
		switch tried := s.mayTry(ctx, tx, f.Factor); {
		case tried == nil:
			offered = append(offered, f)
		case errors.Is(tried, apierr.ChallengeFailures):
			err = tried
		default:
			return nil, tried
		}
	}
	if len(offered) > 0 {
		return offered, nil
	}
	return nil, err
}

// offer creates the challenges that need no choice: that of the only factor, and
// those of authenticators, which cost nothing. Each state leads to one challenge,
// so that it can be redeemed once.
func (s *Service) offer(ctx context.Context, tx *store.Tx, begun step, offered []store.UsableFactor) (mfaapi.SecondStep, error) {
	out := mfaapi.SecondStep{Action: mfaapi.Select}
	if len(offered) == 1 {
		out.Action = mfaapi.Challenge
	}
	for i := range offered {
		f := &offered[i]
		begun.Factor, begun.Challenge = f.ID, id.ID{}
		if len(offered) == 1 || f.Type == store.Authenticator {
			c, err := s.issue(ctx, tx, &f.Factor, NewChallenge{})
			if err != nil {
				return out, err
			}
			begun.Challenge = c.ID
		}
		shown := mfaapi.Factor{Type: strings.ToLower(f.Type), Hint: hint(*f), State: s.signStep(f.TenantID, begun)}
		if out.Action == mfaapi.Challenge {
			out.State, shown.State = shown.State, ""
		}
		out.Factors = append(out.Factors, shown)
	}
	return out, nil
}

// hint distinguishes a factor from others and reveals little of it. It is never
// empty: clients select by it.
func hint(f store.UsableFactor) string {
	switch {
	case f.Type == store.SMS:
		return "xxx-xxx-" + f.Number[max(0, len(f.Number)-4):]
	case f.Issuer != nil:
		return *f.Issuer
	}
	return *f.AccountName
}

// Redeem checks the code of a second step. A challenge without a state is for
// callers with an API key, which have checked the first step.
func (s *Service) Redeem(ctx context.Context, in mfaapi.Redeem) (mfaapi.Redeemed, error) {
	if in.State == "" {
		ref, ok := s.base.Parse(in.Challenge.Href)
		if !ok || ref.Kind != "challenges" {
			return mfaapi.Redeemed{}, apierr.Reference.Because("challenge: there is nothing at %q", in.Challenge.Href)
		}
		return s.redeem(ctx, id.Ref{Tenant: in.Tenant, ID: ref.ID}, in.Code, step{})
	}
	begun, err := s.stepOf(ctx, in.Tenant, in.Application, in.State)
	switch {
	case err != nil:
		return mfaapi.Redeemed{}, err
	case begun.LoggedIn:
		return mfaapi.Redeemed{}, apierr.Reference.Because("the state is of a user who was logged in already")
	case begun.Challenge.IsZero():
		return mfaapi.Redeemed{}, apierr.Reference.Because("the state has no challenge yet; enrol a factor or ask for a challenge with it")
	}
	return s.redeem(ctx, id.Ref{Tenant: in.Tenant, ID: begun.Challenge}, in.Code, begun)
}

// redeem answers a challenge. Any text that is not its code is a wrong one, and
// counted.
func (s *Service) redeem(ctx context.Context, at id.Ref, code string, begun step) (mfaapi.Redeemed, error) {
	c, err := s.answer(ctx, at, code)
	switch {
	case errors.Is(err, apierr.NotFound):
		return mfaapi.Redeemed{}, apierr.Reference.Because("there is no such challenge")
	case err != nil:
		return mfaapi.Redeemed{}, err
	case c.Status != store.Success:
		return mfaapi.Redeemed{}, apierr.CodeWrong.Because("the code is not the one that the challenge asks for")
	}
	return mfaapi.Redeemed{Account: c.AccountID, Organization: begun.Organization}, nil
}
