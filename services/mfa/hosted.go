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

// FactorsOf returns the factors of an account without what would pass their
// challenges.
func (s *Service) FactorsOf(ctx context.Context, account id.Ref) (out mfaapi.AccountFactors, err error) {
	page, err := s.store.AccountFactors(ctx, account, list.Query{Limit: list.MaxLimit})
	if err != nil {
		return out, err
	}
	for _, f := range page.Items {
		factor, err := s.accountFactor(ctx, f)
		if err != nil {
			return out, err
		}
		out.Items = append(out.Items, factor)
	}
	return out, nil
}

func (s *Service) accountFactor(ctx context.Context, f store.Factor) (mfaapi.AccountFactor, error) {
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

// EnrollFactor creates a factor of a user after the first step of a login,
// or of one that is logged in. A state of a login that found a usable factor enrolls
// none: the password alone must not add a second factor. An account of too many factors
// or phones is refused another (mayEnroll).
func (s *Service) EnrollFactor(ctx context.Context, in mfaapi.EnrollFactor) (mfaapi.EnrolledFactor, error) {
	begun := loginState{Application: in.Application, Account: in.Account, LoggedIn: true}
	if in.State != "" {
		var err error
		if begun, err = s.stateOf(ctx, in.Tenant, in.Application, in.State); err != nil {
			return mfaapi.EnrolledFactor{}, err
		}
		if !begun.Factor.IsZero() || !begun.Challenge.IsZero() {
			return mfaapi.EnrolledFactor{}, errHasFactor
		}
		if !slices.Contains(begun.Types, strings.ToLower(in.Type)) {
			return mfaapi.EnrolledFactor{}, apierr.Unsupported.Because("type must be one of %s", strings.Join(begun.Types, ", "))
		}
		in.Account = begun.Account
		if err := s.mayPass(ctx, id.Ref{Tenant: in.Tenant, ID: in.Account}, id.ID{}, begun.Types); err != nil {
			return mfaapi.EnrolledFactor{}, err
		}
	}
	body := NewFactor{Type: field.Some(in.Type), Asked: in.Challenge, ByUser: true}
	if in.Number != "" {
		body.Phone = field.Some(FactorPhone{PhoneText: PhoneText{Number: field.Some(in.Number)}})
	}
	if in.AccountName != nil {
		body.AccountName = field.Some(*in.AccountName)
	}
	if in.Issuer != nil {
		body.Issuer = field.Some(*in.Issuer)
	}
	f, err := s.NewFactor(ctx, id.Ref{Tenant: in.Tenant, ID: in.Account}, body)
	if err != nil {
		return mfaapi.EnrolledFactor{}, err
	}
	out := mfaapi.EnrolledFactor{Challenge: f.ChallengeID}
	if out.Factor, err = s.accountFactor(ctx, f); err != nil {
		return out, err
	}
	if f.Type == store.Authenticator {
		out.Secret, out.KeyURI, out.QRImage = f.Secret, f.KeyURI, secure.Secret(base64.StdEncoding.EncodeToString(f.Image))
	}
	begun.Factor, begun.Challenge = f.ID, f.ChallengeID
	out.State = s.signState(in.Tenant, begun)
	return out, nil
}

// errHasFactor keeps the password alone from adding a factor, or from using one that it
// added before there was another.
var errHasFactor = apierr.Forbidden.Because("the account has a factor; this login must use it")

// mayPass refuses, in the second step of a login, a factor that was never verified where
// the account has another, of the types that the login allows, that can be used. The zero
// id is a factor that is still to be enrolled.
func (s *Service) mayPass(ctx context.Context, account id.Ref, factor id.ID, types []string) error {
	factors, err := s.FactorsOf(ctx, account)
	if err != nil {
		return err
	}
	other := false
	for _, f := range factors.Items {
		if f.ID == factor && f.VerificationStatus == store.Verified {
			return nil
		}
		other = other || f.ID != factor && f.Usable && slices.Contains(types, f.Type)
	}
	if other {
		return errHasFactor
	}
	return nil
}

// stateOf reads a state that was made for an application.
func (s *Service) stateOf(ctx context.Context, tenant, application id.ID, state secure.Secret) (loginState, error) {
	begun, err := s.readState(ctx, tenant, state)
	if err == nil && begun.Application != application {
		err = apierr.Reference.Because("the state is for another application")
	}
	if err == nil && !begun.LoggedIn && !begun.Factor.IsZero() {
		err = s.mayPass(ctx, id.Ref{Tenant: tenant, ID: begun.Account}, begun.Factor, begun.Types)
	}
	if errors.Is(err, errHasFactor) {
		err = apierr.CodeExpired.Because("another factor of the account was verified since the first step; log in again")
	}
	return begun, err
}

// ChallengeFactor creates a challenge of a factor. With a code it answers the
// challenge that a state leads to, or a new one of an authenticator.
func (s *Service) ChallengeFactor(ctx context.Context, in mfaapi.ChallengeFactor) (mfaapi.Challenged, error) {
	var begun loginState
	if in.State != "" {
		var err error
		if begun, err = s.stateOf(ctx, in.Tenant, in.Application, in.State); err != nil {
			return mfaapi.Challenged{}, err
		}
		if begun.Factor.IsZero() {
			return mfaapi.Challenged{}, apierr.Reference.Because("the state has no factor yet; enroll one with it")
		}
		in.Account, in.Factor = begun.Account, begun.Factor
		if in.Code != "" && !begun.Challenge.IsZero() {
			out, err := s.AnswerFactor(ctx, mfaapi.AnswerFactor{Tenant: in.Tenant, Account: in.Account, Challenge: begun.Challenge, Code: in.Code})
			out.State = in.State
			return out, err
		}
	}
	f, err := s.store.Factor(ctx, in.Tenant, in.Factor)
	if err == nil && f.AccountID != in.Account {
		err = apierr.NotFound
	}
	if err == nil && len(in.Types) > 0 {
		err = s.mayPass(ctx, id.Ref{Tenant: in.Tenant, ID: in.Account}, in.Factor, in.Types)
	}
	if err != nil {
		return mfaapi.Challenged{}, err
	}
	var body NewChallenge
	if in.Code != "" && f.Type == store.Authenticator {
		body.Code = field.Some(in.Code)
	}
	c, err := s.NewChallenge(ctx, id.Ref{Tenant: in.Tenant, ID: in.Factor}, body)
	if err != nil {
		return mfaapi.Challenged{}, err
	}
	out := mfaapi.Challenged{ID: c.ID, Factor: c.FactorID, Status: c.Status, Account: c.AccountID}
	if in.State != "" {
		begun.Challenge = c.ID
		out.State = s.signState(in.Tenant, begun)
	}
	return out, nil
}

// AnswerFactor compares a code with a challenge of an account.
func (s *Service) AnswerFactor(ctx context.Context, in mfaapi.AnswerFactor) (mfaapi.Challenged, error) {
	at := id.Ref{Tenant: in.Tenant, ID: in.Challenge}
	c, err := s.store.Challenge(ctx, at.Tenant, at.ID, s.now())
	if err == nil && c.AccountID != in.Account {
		err = apierr.NotFound
	}
	if err == nil && len(in.Types) > 0 {
		err = s.mayPass(ctx, id.Ref{Tenant: in.Tenant, ID: in.Account}, c.FactorID, in.Types)
	}
	if err == nil {
		c, err = s.AnswerChallenge(ctx, at, Answer{Code: field.Some(in.Code)})
	}
	return mfaapi.Challenged{ID: c.ID, Factor: c.FactorID, Status: c.Status, Account: c.AccountID}, err
}
