package idsite

import (
	"context"
	"errors"
	"time"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/locale"
)

// errStoreNotAllowed is the error for a registration in an account store of the user's choice:
// the user would choose the groups of the new account, or its registration rules.
var errStoreNotAllowed = apierr.Forbidden.Because(
	"a registration goes to the default account store of the application, to that of the request, or to an organization")

// Register registers a user (self-service registration, sign-up): it creates an account in the
// application, in the account store that the request names, or in an organization that the page
// names. Where the directory verifies email addresses, the answer and its time are the same for
// an email that is taken, whose owner gets a mail (enumeration.go).
func (p *PageAPI) Register(
	ctx context.Context, kind string, at id.ID, in directoryapi.NewAccount, named directoryapi.StoreName,
) (PageResult, error) {
	steps := time.NewTicker(responseTimeStep)
	defer steps.Stop()
	answer, err := p.register(ctx, kind, at, in, named)
	if answer.Pending {
		waitForTimeStep(ctx, steps)
	}
	return answer, err
}

func (p *PageAPI) register(
	ctx context.Context, kind string, at id.ID, in directoryapi.NewAccount, named directoryapi.StoreName,
) (PageResult, error) {
	if err := p.checkResource(ctx, kind, at); err != nil {
		return PageResult{}, err
	}
	where, err := p.accountStore(ctx, named)
	if err != nil {
		return PageResult{}, err
	}
	if where != accountStoreOf(p.flow) && !p.isOrganization(named) {
		return PageResult{}, errStoreNotAllowed
	}
	if language := locale.OfHeader(caller.From(ctx).AcceptLanguage); language != "" && !in.Locale.Given() {
		in.Locale = field.Some(language) // that of the page
	}
	account, err := p.svc.peers.Application.Register(ctx, applicationapi.Register{LoginTarget: where, Account: in})
	if errors.Is(err, apierr.Exists) {
		return p.svc.mailOwnerOfTakenEmail(ctx, where, in, err)
	}
	if err != nil {
		return PageResult{}, err
	}
	if account.Status != directoryapi.Enabled {
		return PageResult{Pending: true}, nil
	}
	logged := applicationapi.LoggedIn{Account: account}
	if where.NameKey != "" || where.AccountStore.Href != "" {
		stores, err := p.svc.loginStores(ctx, where)
		if err != nil {
			return PageResult{}, err
		}
		logged.Organization = stores.Organization
	}
	answer, err := p.completeFirstStep(ctx, logged, registered, true)
	answer.Created = &account
	return answer, err
}
