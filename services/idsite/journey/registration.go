package journey

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/locale"
	"github.com/doorward/doorward/services/idsite/store"
)

// errStoreNotAllowed is the error for a registration in an account store of the user's choice:
// the user would choose the groups of the new account, or its registration rules.
var errStoreNotAllowed = apierr.Forbidden.Because(
	"a registration goes to the default account store of the application, to that of the request, or to an organization")

// Register registers a user (self-service registration, sign-up): it creates an account in the
// application, in the account store that the request names, or in an organization that the browser
// names, and logs it in. Where the directory verifies email addresses, the result and its time are the same for
// an email that is taken, whose owner gets a mail (enumeration.go).
func (j *Journey) Register(ctx context.Context, f *store.Flow, named directoryapi.StoreName,
	in directoryapi.NewAccount) (Result, error) {
	steps := time.NewTicker(responseTimeStep)
	defer steps.Stop()
	result, err := j.register(ctx, f, named, in)
	if result.Wants == Verification {
		waitForTimeStep(ctx, steps)
	}
	return result, err
}

func (j *Journey) register(ctx context.Context, f *store.Flow, named directoryapi.StoreName,
	in directoryapi.NewAccount) (Result, error) {
	where, err := j.Target(ctx, *f, named)
	if err != nil {
		return Result{}, err
	}
	if where != Requested(*f) && !j.isOrganization(named.Href) {
		return Result{}, errStoreNotAllowed
	}
	if language := locale.OfHeader(caller.From(ctx).AcceptLanguage); language != "" && !in.Locale.Given() {
		in.Locale = field.Some(language) // that of the page
	}
	account, err := j.peers.Application.Register(ctx, applicationapi.Register{LoginTarget: where, Account: in})
	if errors.Is(err, apierr.Exists) {
		return j.mailOwnerOfTakenEmail(ctx, where, in, err)
	}
	if err != nil {
		return Result{}, err
	}
	if account.Status != directoryapi.Enabled {
		return Result{Wants: Verification}, nil
	}
	logged := applicationapi.LoggedIn{Account: account}
	if where.NameKey != "" || where.AccountStore.Href != "" {
		stores, err := j.Stores(ctx, where)
		if err != nil {
			return Result{}, err
		}
		logged.Organization = stores.Organization
	}
	f.ByPassword = true
	return j.passFirstStep(ctx, f, logged, true)
}

// mailOwnerOfTakenEmail answers a registration with an email that an account has already. Where
// the directory verifies email addresses, the answer is that of any registration, and the owner
// of the account gets a mail: the verification mail again, or one that says that there is an
// account, with the ways to sign in and to a new password. Otherwise a new user would be logged in
// at once, so that nothing can be hidden: mailOwnerOfTakenEmail returns the refusal. It also does
// for a user name that is taken while the email is not, unless that is somebody's email.
func (j *Journey) mailOwnerOfTakenEmail(ctx context.Context, where applicationapi.LoginTarget,
	in directoryapi.NewAccount,
	refusal error) (Result, error) {
	stores, err := j.peers.Application.LoginDirectories(ctx, where)
	if err != nil || stores.Default.IsZero() {
		return Result{}, errors.Join(refusal, err)
	}
	rules, err := j.peers.Directory.RegistrationRules(ctx, id.Ref{Tenant: where.Tenant, ID: stores.Default})
	if err != nil {
		return Result{}, err
	}
	if !rules.VerificationEmail {
		return Result{}, refusal
	}
	for _, login := range []string{in.Email.Or(""), in.Username.Or("")} {
		if !strings.Contains(login, "@") {
			continue
		}
		_, err := j.peers.Directory.RemindOfAccount(ctx, directoryapi.RequestReset{
			Tenant: where.Tenant, Application: where.Application, Login: login, Anonymous: true,
			Stores: []directoryapi.Store{{Kind: directoryapi.Directories, ID: stores.Default}},
		})
		if errors.Is(err, apierr.NoSuchResource) {
			continue
		}
		return Result{Wants: Verification}, err
	}
	return Result{}, refusal
}
