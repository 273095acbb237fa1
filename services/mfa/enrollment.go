package mfa

import (
	"context"
	"encoding/base64"
	"errors"
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

// EnrollFactor creates a factor for a user in the second step of a login, or logged in. Whether
// the user may is decided in factorrule.go. It refuses an account with too many factors or phones
// (checkEnrollmentLimit).
func (s *Service) EnrollFactor(ctx context.Context, in mfaapi.EnrollFactor) (mfaapi.EnrolledFactor, error) {
	login, err := s.loginOf(ctx, in.Tenant, in.Application, in.State,
		loginState{Account: in.Account, Types: in.Types, SecondFactor: in.SecondFactor})
	if err != nil {
		return mfaapi.EnrolledFactor{}, err
	}
	if err := s.mayEnroll(ctx, in.Tenant, login, in.Type); err != nil {
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
		out.Secret, out.KeyURI, out.QRImage = f.Secret, f.KeyURI,
			secure.Secret(base64.StdEncoding.EncodeToString(f.Image))
	}
	if !login.Hosted {
		login.Factor, login.Challenge = f.ID, f.ChallengeID
		out.State = s.signState(in.Tenant, login)
	}
	return out, nil
}

// loginOf returns the login of a request: that of its state or, where it has none, direct. That is
// the login of a hosted page, which names the types of factor that it allows, or that of a user who
// is logged in. A state of the latter ends with the password that is valid now.
func (s *Service) loginOf(ctx context.Context, tenant, application id.ID, state secure.Secret,
	direct loginState) (loginState, error) {
	if state != "" {
		return s.verifyApplicationState(ctx, tenant, application, state)
	}
	direct.Application = application
	if len(direct.Types) > 0 {
		direct.Hosted = true
		return direct, nil
	}
	account, err := s.directory.Account(ctx, id.Ref{Tenant: tenant, ID: direct.Account})
	direct.Types, direct.LoggedIn, direct.PasswordSetAt = mfaapi.Types, true, passwordSetAt(account)
	return direct, err
}

// verifyApplicationState verifies a state token (loginstate.go) that was made for an
// application. It returns apierr.Reference for the state of another application or of a factor
// that is gone, and apierr.CodeExpired where another factor of the account was verified since the
// first step.
func (s *Service) verifyApplicationState(ctx context.Context, tenant, application id.ID,
	state secure.Secret) (loginState, error) {
	login, err := s.verifyState(ctx, tenant, state)
	if err == nil && login.Application != application {
		err = apierr.Reference.Because("the state is for another application")
	}
	if err != nil || login.Factor.IsZero() {
		return login, err
	}
	_, err = s.mayUse(ctx, tenant, login, login.Factor)
	switch {
	case errors.Is(err, apierr.NotFound):
		err = apierr.Reference.Because("the factor of the state is gone")
	case errors.Is(err, apierr.Forbidden):
		err = apierr.CodeExpired.Because(
			"another factor of the account was verified since the first step; log in again")
	}
	return login, err
}

// ChallengeFactor creates a challenge of a factor. A request with a code answers the challenge
// of its state, or creates and answers a challenge of an authenticator.
func (s *Service) ChallengeFactor(ctx context.Context, in mfaapi.ChallengeFactor) (mfaapi.Challenged, error) {
	login, err := s.loginOf(ctx, in.Tenant, in.Application, in.State,
		loginState{Account: in.Account, Types: in.Types, SecondFactor: in.SecondFactor})
	if err != nil {
		return mfaapi.Challenged{}, err
	}
	if in.State != "" {
		if in.Factor = login.Factor; in.Factor.IsZero() {
			return mfaapi.Challenged{}, apierr.Reference.Because("the state has no factor yet; enroll one with it")
		}
	}
	f, err := s.mayUse(ctx, in.Tenant, login, in.Factor)
	if err != nil {
		return mfaapi.Challenged{}, err
	}
	var c store.Challenge
	if in.Code != "" && !login.Challenge.IsZero() {
		c, err = s.AnswerChallenge(ctx, id.Ref{Tenant: in.Tenant, ID: login.Challenge},
			Answer{Code: field.Some(in.Code)})
	} else {
		var body NewChallenge
		if in.Code != "" && f.Type == store.Authenticator {
			body.Code = field.Some(in.Code)
		}
		c, err = s.CreateChallenge(ctx, id.Ref{Tenant: in.Tenant, ID: in.Factor}, body)
	}
	out := describeChallenge(login, f, c)
	if err != nil || login.Hosted {
		return out, err
	}
	login.Factor, login.Challenge = c.FactorID, c.ID
	if c.Status == store.Success {
		login = login.afterFactor(f.Type)
	}
	out.State = s.signState(in.Tenant, login)
	return out, nil
}

// AnswerFactor verifies the code for a challenge of an account.
func (s *Service) AnswerFactor(ctx context.Context, in mfaapi.AnswerFactor) (mfaapi.Challenged, error) {
	login, err := s.loginOf(ctx, in.Tenant, id.ID{}, "",
		loginState{Account: in.Account, Types: in.Types, SecondFactor: in.SecondFactor})
	if err != nil {
		return mfaapi.Challenged{}, err
	}
	at := id.Ref{Tenant: in.Tenant, ID: in.Challenge}
	c, err := s.store.Challenge(ctx, at.Tenant, at.ID, s.now())
	if err != nil {
		return mfaapi.Challenged{}, err
	}
	f, err := s.mayUse(ctx, in.Tenant, login, c.FactorID)
	if err == nil {
		c, err = s.AnswerChallenge(ctx, at, Answer{Code: field.Some(in.Code)})
	}
	return describeChallenge(login, f, c), err
}

// describeChallenge returns a challenge of a factor as the user of a login sees it.
func describeChallenge(login loginState, f store.Factor, c store.Challenge) mfaapi.Challenged {
	return mfaapi.Challenged{
		ID: c.ID, Factor: c.FactorID, Status: c.Status, Account: c.AccountID,
		Type: strings.ToLower(f.Type), StepUp: !login.allows(f.Type),
	}
}
