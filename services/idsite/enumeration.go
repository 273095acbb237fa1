package idsite

import (
	"context"
	"errors"
	"time"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/id"
)

// RequestPasswordReset sends a password reset mail. Its answer and its time are the same
// whether the account exists.
func (p *PageAPI) RequestPasswordReset(ctx context.Context, application id.ID, login string, at directoryapi.StoreName) error {
	if err := p.checkApplication(application); err != nil {
		return err
	}
	return hideAccountExistence(ctx, func() error {
		_, err := p.svc.peers.Application.RequestReset(ctx, applicationapi.LoginName{Where: p.accountStore(at), Login: login})
		return err
	})
}

// answerTakenEmail answers a registration with a taken email. Where addresses are confirmed
// by mail, it looks like any other, and the owner is reminded of the account.
func (s *Service) answerTakenEmail(ctx context.Context, where applicationapi.Where, email string, refusal error) (PageResult, error) {
	stores, err := s.peers.Application.LoginStores(ctx, where)
	if err != nil || stores.Default.IsZero() {
		return PageResult{}, errors.Join(refusal, err)
	}
	rules, err := s.peers.Directory.RegistrationRules(ctx, id.Ref{Tenant: where.Tenant, ID: stores.Default})
	if err != nil {
		return PageResult{}, err
	}
	if !rules.VerificationEmail {
		return PageResult{}, refusal
	}
	if _, err := s.peers.Application.RequestReset(ctx, applicationapi.LoginName{Where: where, Login: email}); apierr.From(err) != nil &&
		apierr.From(err).Status >= 500 {
		return PageResult{}, err
	}
	return PageResult{Pending: true}, nil
}

// responseTimeStep is the multiple to which response times are rounded up, so that timing does not
// show whether an account exists: for one that does, the services write another row.
const responseTimeStep = 50 * time.Millisecond

// hideAccountExistence hides from the caller whether fn found an account, in its answer and in
// its time, which is a multiple of responseTimeStep.
func hideAccountExistence(ctx context.Context, fn func() error) error {
	steps := time.NewTicker(responseTimeStep)
	defer steps.Stop()
	err := fn()
	waitForTimeStep(ctx, steps)
	if refusal := apierr.From(err); refusal != nil && (refusal.Status >= 500 || errors.Is(err, apierr.TooMany)) {
		return err
	}
	return nil
}

// waitForTimeStep waits for the end of a step that has begun.
func waitForTimeStep(ctx context.Context, steps *time.Ticker) {
	select {
	case <-steps.C: // a step that passed meanwhile
	default:
	}
	select {
	case <-steps.C:
	case <-ctx.Done():
	}
}
