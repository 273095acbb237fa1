package mfa

import (
	"context"
	"slices"
	"strings"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/services/mfa/store"
)

// The rule of second factors: the password alone never adds a factor to an account that has one
// (docs/interface/multi-factor.md#who-may-enroll). Hosted pages, the Client API, its access tokens
// and the grants of the oauth service all ask here, by BeginSecondStep, EnrollFactor,
// ChallengeFactor, AnswerFactor and VerifySecondStep.
//
// A factor is usable while it is enabled and verified, and its phone is too. Where the account has
// a usable factor of any type, the user enrolls another one, or verifies one that was left
// unverified, only after passing a usable one in the same login (loginState.SecondFactor). Where the
// login does not allow the type of any usable factor, one of them is asked for all the same, as a
// step-up: its code lets the user enroll a factor of an allowed type, and completes no login
// (afterFactor). Otherwise any application that allows another type would open all of them.

// errVerifiedFactorExists is the error for a user who tries to add a factor, or to use one that
// was never verified, with the password alone, although the account has a usable factor.
var errVerifiedFactorExists = apierr.Forbidden.Because("the account has a factor; pass it first")

// mayEnroll returns nil where a login may enroll a factor of a type, or errVerifiedFactorExists. A
// type that the login does not allow is apierr.Unsupported; a user who is logged in may enroll any.
func (s *Service) mayEnroll(ctx context.Context, tenant id.ID, login loginState, kind string) error {
	hasBegun := !login.Factor.IsZero() || !login.Challenge.IsZero() // the state asks for the code of a factor
	exists, err := s.store.HasUsableFactor(ctx, tenant, login.Account, store.Types)
	switch {
	case err != nil:
		return err
	case !login.SecondFactor && (exists || hasBegun):
		return errVerifiedFactorExists
	case !login.LoggedIn && !login.allows(kind):
		return apierr.Unsupported.Because("type must be one of %s", strings.Join(login.Types, ", "))
	}
	return nil
}

// mayUse returns a factor where a login may challenge it and answer the challenge: a verified one
// of its account, unless the login allows another one that is usable and not this; and an unverified
// one of a type that the login allows, where the account has no usable factor or the user has passed
// one. It returns apierr.NotFound for a factor of another account.
func (s *Service) mayUse(ctx context.Context, tenant id.ID, login loginState, factor id.ID) (store.Factor, error) {
	f, err := s.store.Factor(ctx, tenant, factor)
	if err != nil {
		return f, err
	}
	isVerified, isAllowed := f.VerificationStatus == store.Verified, login.allows(f.Type)
	refusing := store.Types // the types of the usable factors that the user must pass instead
	switch {
	case f.AccountID != login.Account:
		return store.Factor{}, apierr.NotFound
	case !isVerified && !isAllowed:
		return f, errTypeNotAllowed
	case isVerified && isAllowed, login.SecondFactor:
		return f, nil
	case isVerified: // a step-up
		refusing = login.storedTypes()
	}
	exists, err := s.store.HasUsableFactor(ctx, tenant, login.Account, refusing)
	switch {
	case err != nil || !exists:
		return f, err
	case isVerified:
		return f, errTypeNotAllowed
	}
	return f, errVerifiedFactorExists
}

// errTypeNotAllowed is the error for a factor of a type that the login does not allow.
var errTypeNotAllowed = apierr.Forbidden.Because("the login does not allow factors of this type")

// storedTypes are the types that the login allows, as the store has them.
func (l loginState) storedTypes() []string {
	types := make([]string, len(l.Types))
	for i, name := range l.Types {
		types[i] = storedTypes[name]
	}
	return types
}

// allows reports whether a factor of a type, written in any letter case, completes the login.
func (l loginState) allows(kind string) bool { return slices.Contains(l.Types, strings.ToLower(kind)) }

// afterFactor returns the login after the user has passed a factor of a type: a user who is logged
// in, and one whose login does not allow the type (step-up), may enroll a factor now.
func (l loginState) afterFactor(kind string) loginState {
	switch {
	case l.LoggedIn:
		l.SecondFactor = true
	case !l.allows(kind):
		l.SecondFactor, l.Factor, l.Challenge = true, id.ID{}, id.ID{}
	}
	return l
}
