package mfa

import (
	"context"
	"encoding/base64"
	"errors"
	"slices"
	"strings"

	"github.com/doorward/doorward/pkg/api/mfaapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/list"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/mfa/store"
)

// FactorsOf returns the factors of an account without their secrets.
func (s *Service) FactorsOf(ctx context.Context, account id.Ref) (out mfaapi.AccountFactors, err error) {
	page, err := s.store.AccountFactors(ctx, account, list.Query{Limit: list.MaxLimit})
	if err != nil {
		return out, err
	}
	for _, f := range page.Items {
		factor, err := s.describeFactor(ctx, f)
		if err != nil {
			return out, err
		}
		out.Items = append(out.Items, factor)
	}
	return out, nil
}

// describeFactor returns a factor as its owner sees it, with the number of its phone and
// whether it can pass a second step now.
func (s *Service) describeFactor(ctx context.Context, f store.Factor) (mfaapi.AccountFactor, error) {
	out := mfaapi.AccountFactor{
		ID: f.ID, Type: strings.ToLower(f.Type), Status: f.Status, VerificationStatus: f.VerificationStatus,
		AccountName: f.AccountName, Issuer: f.Issuer, PhoneID: f.PhoneID,
		Usable: f.Status == store.Enabled && f.VerificationStatus == store.Verified,
	}
	if f.Type != store.SMS {
		return out, nil
	}
	phone, err := s.store.Phone(ctx, f.TenantID, f.PhoneID)
	if err != nil && !errors.Is(err, apierr.NotFound) {
		return out, err
	}
	out.Number = phone.Number
	out.Usable = out.Usable && phone.Status == store.Enabled && phone.VerificationStatus == store.Verified
	return out, nil
}

// EnrollFactor creates a factor for a user in the second step of a login, or logged in. Where
// the account has a usable factor, the user must have passed one: the password alone must not
// add another. It refuses an account with too many factors or phones (checkEnrollmentLimit).
func (s *Service) EnrollFactor(ctx context.Context, in mfaapi.EnrollFactor) (mfaapi.EnrolledFactor, error) {
	login := directLogin(in.Application, in.Account, in.Types, in.SecondFactor)
	if in.State != "" {
		var err error
		if login, err = s.verifyApplicationState(ctx, in.Tenant, in.Application, in.State); err != nil {
			return mfaapi.EnrolledFactor{}, err
		}
		if !login.SecondFactor && (!login.Factor.IsZero() || !login.Challenge.IsZero()) {
			return mfaapi.EnrolledFactor{}, errVerifiedFactorExists
		}
	}
	if !login.LoggedIn && !slices.Contains(login.Types, strings.ToLower(in.Type)) {
		return mfaapi.EnrolledFactor{}, apierr.Unsupported.Because("type must be one of %s", strings.Join(login.Types, ", "))
	}
	if err := s.refuseUnverifiedFactor(ctx, in.Tenant, login, id.ID{}); err != nil {
		return mfaapi.EnrolledFactor{}, err
	}
	body := NewFactor{Type: field.Some(in.Type), WithChallenge: in.Challenge, ByUser: true}
	if in.Number != "" {
		body.Phone = field.Some(FactorPhone{PhoneBody: PhoneBody{Number: field.Some(in.Number)}})
	}
	if in.AccountName != nil {
		body.AccountName = field.Some(*in.AccountName)
	}
	if in.Issuer != nil {
		body.Issuer = field.Some(*in.Issuer)
	}
	f, err := s.CreateFactor(ctx, id.Ref{Tenant: in.Tenant, ID: login.Account}, body)
	if err != nil {
		return mfaapi.EnrolledFactor{}, err
	}
	out := mfaapi.EnrolledFactor{Challenge: f.ChallengeID}
	if out.Factor, err = s.describeFactor(ctx, f); err != nil {
		return out, err
	}
	if f.Type == store.Authenticator {
		out.Secret, out.KeyURI, out.QRImage = f.Secret, f.KeyURI, secure.Secret(base64.StdEncoding.EncodeToString(f.Image))
	}
	login.Factor, login.Challenge = f.ID, f.ChallengeID
	out.State = s.signState(in.Tenant, login)
	return out, nil
}

// directLogin returns the login of a request without a state: that of a hosted page, which
// names the types of factor that it allows, or that of a user who is logged in.
func directLogin(application, account id.ID, types []string, secondFactor bool) loginState {
	login := loginState{Application: application, Account: account, Types: types}
	if len(types) == 0 {
		login.Types, login.LoggedIn, login.SecondFactor = mfaapi.Types, true, secondFactor
	}
	return login
}

// errVerifiedFactorExists is the error for a user who tries to add a factor, or to use one that
// was never verified, with the password alone, although the account has a verified factor.
var errVerifiedFactorExists = apierr.Forbidden.Because("the account has a factor; pass it first")

// refuseUnverifiedFactor keeps the password alone from passing the second step of a login. It
// returns errVerifiedFactorExists for a factor that was never verified, where the account has
// a usable factor of a type that the login allows and the user has passed none. The zero id
// stands for a factor that is still to be enrolled.
func (s *Service) refuseUnverifiedFactor(ctx context.Context, tenant id.ID, login loginState, factor id.ID) error {
	if login.SecondFactor {
		return nil
	}
	factors, err := s.FactorsOf(ctx, id.Ref{Tenant: tenant, ID: login.Account})
	if err != nil {
		return err
	}
	otherUsable := false
	for _, f := range factors.Items {
		if f.ID == factor && f.VerificationStatus == store.Verified {
			return nil
		}
		otherUsable = otherUsable || f.ID != factor && f.Usable && slices.Contains(login.Types, f.Type)
	}
	if otherUsable {
		return errVerifiedFactorExists
	}
	return nil
}

// verifyApplicationState verifies a state token (loginstate.go) that was made for an
// application. It returns apierr.Reference for the state of another application, and
// apierr.CodeExpired where another factor of the account was verified since the first step.
func (s *Service) verifyApplicationState(ctx context.Context, tenant, application id.ID, state secure.Secret) (loginState, error) {
	login, err := s.verifyState(ctx, tenant, state)
	if err == nil && login.Application != application {
		err = apierr.Reference.Because("the state is for another application")
	}
	if err == nil && !login.Factor.IsZero() {
		err = s.refuseUnverifiedFactor(ctx, tenant, login, login.Factor)
	}
	if errors.Is(err, errVerifiedFactorExists) {
		err = apierr.CodeExpired.Because("another factor of the account was verified since the first step; log in again")
	}
	return login, err
}

// ChallengeFactor creates a challenge of a factor. A request with a code answers the challenge
// of its state, or creates and answers a challenge of an authenticator.
func (s *Service) ChallengeFactor(ctx context.Context, in mfaapi.ChallengeFactor) (mfaapi.Challenged, error) {
	login := directLogin(in.Application, in.Account, in.Types, in.SecondFactor)
	if in.State != "" {
		var err error
		if login, err = s.verifyApplicationState(ctx, in.Tenant, in.Application, in.State); err != nil {
			return mfaapi.Challenged{}, err
		}
		if login.Factor.IsZero() {
			return mfaapi.Challenged{}, apierr.Reference.Because("the state has no factor yet; enroll one with it")
		}
		in.Account, in.Factor = login.Account, login.Factor
		if in.Code != "" && !login.Challenge.IsZero() {
			out, err := s.AnswerFactor(ctx, mfaapi.AnswerFactor{Tenant: in.Tenant, Account: in.Account, Challenge: login.Challenge, Code: in.Code})
			out.State = in.State
			if login.LoggedIn && out.Status == store.Success {
				login.SecondFactor = true
				out.State = s.signState(in.Tenant, login)
			}
			return out, err
		}
	}
	f, err := s.store.Factor(ctx, in.Tenant, in.Factor)
	if err == nil && f.AccountID != in.Account {
		err = apierr.NotFound
	}
	if err == nil && in.State == "" {
		err = s.refuseUnverifiedFactor(ctx, in.Tenant, login, in.Factor)
	}
	if err != nil {
		return mfaapi.Challenged{}, err
	}
	var body NewChallenge
	if in.Code != "" && f.Type == store.Authenticator {
		body.Code = field.Some(in.Code)
	}
	c, err := s.CreateChallenge(ctx, id.Ref{Tenant: in.Tenant, ID: in.Factor}, body)
	if err != nil {
		return mfaapi.Challenged{}, err
	}
	out := mfaapi.Challenged{ID: c.ID, Factor: c.FactorID, Status: c.Status, Account: c.AccountID}
	if in.State != "" || login.LoggedIn {
		login.Factor, login.Challenge = c.FactorID, c.ID
		login.SecondFactor = login.SecondFactor || login.LoggedIn && c.Status == store.Success
		out.State = s.signState(in.Tenant, login)
	}
	return out, nil
}

// AnswerFactor verifies the code for a challenge of an account.
func (s *Service) AnswerFactor(ctx context.Context, in mfaapi.AnswerFactor) (mfaapi.Challenged, error) {
	at := id.Ref{Tenant: in.Tenant, ID: in.Challenge}
	c, err := s.store.Challenge(ctx, at.Tenant, at.ID, s.now())
	if err == nil && c.AccountID != in.Account {
		err = apierr.NotFound
	}
	if err == nil && len(in.Types) > 0 {
		err = s.refuseUnverifiedFactor(ctx, in.Tenant, loginState{Account: in.Account, Types: in.Types}, c.FactorID)
	}
	if err == nil {
		c, err = s.AnswerChallenge(ctx, at, Answer{Code: field.Some(in.Code)})
	}
	return mfaapi.Challenged{ID: c.ID, Factor: c.FactorID, Status: c.Status, Account: c.AccountID}, err
}
