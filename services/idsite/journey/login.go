package journey

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/idsite/store"
)

// Step is what a login still wants.
type Step string

// What a login may want.
const (
	Nothing      Step = ""             // the login has ended
	Factor       Step = "factor"       // a second factor (factor.go)
	Verification Step = "verification" // the user must verify an email address, and log in then
)

// Result is what a step of a login has come to.
type Result struct {
	Wants   Step
	Account directoryapi.Account // has passed the first step; zero with Verification
	IsNew   bool                 // the login has registered the account
}

// Methods are the authentication methods of a login (amr, RFC 8176), or nil for that of the first step alone.
func Methods(f store.Flow) []string {
	if !f.FactorPassed {
		return nil
	}
	return []string{"pwd", "mfa"}
}

// Login is the journey of a browser whose login is in progress. Its door has proved the flow: the browser has begun
// it. What the browser names in a call, it checks.
type Login struct {
	*Journey
	Flow store.Flow
}

// CheckApplication returns apierr.Forbidden for another application than that of the login.
func (l *Login) CheckApplication(application id.ID) error {
	if application != l.Flow.ApplicationID {
		return ErrNotAllowed
	}
	return nil
}

// CheckResource returns apierr.Forbidden for a resource that is neither the application of the
// login nor the account store that the request of the login names.
func (l *Login) CheckResource(ctx context.Context, kind string, at id.ID) error {
	if kind == "applications" {
		return l.CheckApplication(at)
	}
	named, err := l.RequestedStore(ctx, l.Flow)
	if err != nil {
		return err
	}
	if ref, ok := l.base.Parse(named.Href); !ok || ref.Kind != kind || ref.ID != at {
		return ErrNotAllowed
	}
	return nil
}

// Begin begins a login. It returns apierr.TokenReplayed where a login with the same request has begun (replay).
func (j *Journey) Begin(ctx context.Context, f store.Flow) error {
	err := j.store.Tx(ctx, func(tx *store.Tx) error { return tx.InsertFlow(ctx, f) })
	if errors.Is(err, apierr.Exists) {
		return apierr.TokenReplayed.Because("the jti of the request was used already")
	}
	return err
}

// maxBegunLogins is how many logins of one application may be in progress for one client address. Anybody
// can begin them without a key, with a state of some kilobytes that is stored until the login ends, at most
// providerLoginTTL and SAMLLoginTTL: without a limit a single client fills the database.
const maxBegunLogins = 200

// BeginAnonymous is Begin for a login that no key has signed. It returns apierr.TooMany with the time until one
// of the client address may begin again.
func (j *Journey) BeginAnonymous(ctx context.Context, f store.Flow) (err error) {
	if f.Address, err = j.limitBegunLogins(ctx, f.TenantID, f.ApplicationID); err != nil {
		return err
	}
	return j.Begin(ctx, f)
}

// limitBegunLogins returns the client address of the request, with which a login that begins is stored, or
// apierr.TooMany. Logins that have ended do not count, so that an office behind one address is not shut out by
// its own users.
func (j *Journey) limitBegunLogins(ctx context.Context, tenant, application id.ID) (address string, err error) {
	address, now := caller.From(ctx).Network().String(), j.now()
	until, err := j.store.NthBegunLoginEnd(ctx, tenant, application, address, maxBegunLogins, now)
	if errors.Is(err, apierr.NotFound) {
		return address, nil
	}
	if err != nil {
		return "", err
	}
	return "", apierr.TooMany.Because(
		"%d logins of the application are in progress for this client address; the next may begin after %s",
		maxBegunLogins, until.UTC().Format(time.RFC3339)).WithRetryAfter(until.Sub(now))
}

// LogIn verifies a password, in the account store that the browser names (Target). Its error does not tell
// whether the account exists. An account that must verify its email first is refused with
// apierr.AccountUnverified: SendVerification serves it from then on.
func (j *Journey) LogIn(ctx context.Context, f *store.Flow, named directoryapi.StoreName, login string,
	password secure.Secret) (Result, error) {
	where, err := j.Target(ctx, *f, named)
	if err != nil {
		return Result{}, err
	}
	logged, err := j.peers.Application.Login(ctx, applicationapi.Login{
		Tenant: where.Tenant, Application: where.Application, Login: login, Password: password,
		AccountStore: where.AccountStore, NameKey: where.NameKey,
	})
	switch {
	case errors.Is(err, apierr.NoSuchAccount), errors.Is(err, apierr.WrongPassword):
		return Result{}, errWrongLogin
	case errors.Is(err, apierr.AccountUnverified):
		return Result{}, j.recordUnverified(ctx, f, applicationapi.LoginName{LoginTarget: where, Login: login}, err)
	case err != nil:
		return Result{}, err
	}
	f.ByPassword = true
	return j.passFirstStep(ctx, f, logged, false)
}

// errWrongLogin does not tell whether the account exists (user enumeration), because anybody can
// call from a hosted page.
var errWrongLogin = apierr.WrongPassword.Because("the user name, the email or the password is wrong")

// recordUnverified records the account of a login that was refused after its right password, because its email
// is not verified: the page may show the address, and have the verification mail sent again. It returns the
// refusal.
func (j *Journey) recordUnverified(ctx context.Context, f *store.Flow, login applicationapi.LoginName,
	refusal error) error {
	account, err := j.peers.Application.LoginAccount(ctx, login)
	if errors.Is(err, apierr.NotFound) {
		return refusal
	}
	if err != nil {
		return err
	}
	if account.Status != directoryapi.Unverified {
		return refusal // verified meanwhile, or the status is that of a linked account
	}
	f.UnverifiedID = account.ID
	return cmp.Or(j.change(ctx, func(tx *store.Tx) error { return tx.RecordUnverified(ctx, *f, j.now()) }), refusal)
}

// passFirstStep continues a login after its first step: with the second step where the login demands one
// (require_mfa), else with its end.
func (j *Journey) passFirstStep(ctx context.Context, f *store.Flow, logged applicationapi.LoggedIn,
	isNew bool) (Result, error) {
	result := Result{Account: logged.Account, IsNew: isNew}
	if len(f.FactorTypes) > 0 {
		result.Wants = Factor
		return result, j.recordFirstStep(ctx, f, logged, isNew)
	}
	*f = f.WithAccount(logged.Account, logged.Organization)
	return result, j.finish(ctx, f)
}

// recordFirstStep records which account has passed the first step of a login.
func (j *Journey) recordFirstStep(ctx context.Context, f *store.Flow, logged applicationapi.LoggedIn,
	isNew bool) error {
	passed := f.WithAccount(logged.Account, logged.Organization)
	passed.IsNew = isNew
	if err := j.change(ctx, func(tx *store.Tx) error { return tx.RecordFirstStep(ctx, passed, j.now()) }); err != nil {
		return err
	}
	*f = passed
	return nil
}

// finish ends a login for the browser that has begun it. Of parallel calls one succeeds; the others return
// ErrEnded.
func (j *Journey) finish(ctx context.Context, f *store.Flow) error {
	assertion := id.New(j.now()).String()
	f.AssertionID = &assertion
	return j.finishWithoutSession(ctx, f)
}

// finishWithoutSession ends a login that no session follows.
func (j *Journey) finishWithoutSession(ctx context.Context, f *store.Flow) error {
	now := j.now()
	if err := j.change(ctx, func(tx *store.Tx) error { return tx.FinishFlow(ctx, *f, now) }); err != nil {
		return err
	}
	f.FinishedAt = &now
	return nil
}
