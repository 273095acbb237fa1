package idsite

// Protection against user enumeration: the answers of this file, and the time that they take, do
// not tell whether an account exists. Wrong passwords are in services/directory/login.go.

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/id"
)

// RequestPasswordReset sends a password reset mail (forgot password). Its answer and its time
// are the same whether the account exists or not.
func (p *PageAPI) RequestPasswordReset(ctx context.Context, application id.ID, login string, at directoryapi.StoreName) error {
	if err := p.checkApplication(application); err != nil {
		return err
	}
	where, err := p.accountStore(ctx, at)
	if err != nil {
		return err
	}
	return hideAccountExistence(ctx, func() error {
		_, err := p.svc.peers.Application.RequestReset(ctx, applicationapi.LoginName{LoginTarget: where, Login: login})
		return err
	})
}

// mailOwnerOfTakenEmail answers a registration with an email that an account has already. Where
// the directory verifies email addresses, the answer is that of any registration, and the owner
// of the account gets a mail: the verification mail again, or one that says that there is an
// account, with the ways to sign in and to a new password. Otherwise a new user would be logged in
// at once, so that nothing can be hidden: mailOwnerOfTakenEmail returns the refusal. It also does
// for a user name that is taken while the email is not, unless that is somebody's email.
func (s *Service) mailOwnerOfTakenEmail(ctx context.Context, where applicationapi.LoginTarget, in directoryapi.NewAccount, refusal error) (
	PageResult, error,
) {
	stores, err := s.peers.Application.LoginDirectories(ctx, where)
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
	for _, login := range []string{in.Email.Or(""), in.Username.Or("")} {
		if !strings.Contains(login, "@") {
			continue
		}
		_, err := s.peers.Directory.RemindOfAccount(ctx, directoryapi.RequestReset{
			Tenant: where.Tenant, Application: where.Application, Login: login, Anonymous: true,
			Stores: []directoryapi.Store{{Kind: directoryapi.Directories, ID: stores.Default}},
		})
		if errors.Is(err, apierr.NoSuchResource) {
			continue
		}
		return PageResult{Pending: true}, err
	}
	return PageResult{}, refusal
}

// responseTimeStep is the multiple to which response times are rounded up, against timing
// attacks: for an account that exists the services write one row more.
const responseTimeStep = 50 * time.Millisecond

// hideAccountExistence calls fn, whose result depends on whether an account exists, and hides
// that: it returns nil unless fn has failed for another reason, and takes a multiple of
// responseTimeStep.
func hideAccountExistence(ctx context.Context, fn func() error) error {
	steps := time.NewTicker(responseTimeStep)
	defer steps.Stop()
	err := fn()
	waitForTimeStep(ctx, steps)
	if apierr.IsRefusal(err) && !errors.Is(err, apierr.TooMany) {
		return nil
	}
	return err
}

// waitForTimeStep waits for the next tick.
func waitForTimeStep(ctx context.Context, steps *time.Ticker) {
	select {
	case <-steps.C: // a tick that was due before
	default:
	}
	select {
	case <-steps.C:
	case <-ctx.Done():
	}
}
