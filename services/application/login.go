package application

import (
	"context"
	"encoding/base64"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/pkg/telemetry"
	"github.com/doorward/doorward/services/application/store"
	"github.com/doorward/doorward/services/application/throttle"
)

// LoginAttempt is the body of a login attempt, which logs an account in by its password.
type LoginAttempt struct {
	Type         field.Text                             `json:"type"`
	Value        field.Nullable[secure.Secret]          `json:"value"` // Base64 of <login>:<password>
	AccountStore field.Nullable[directoryapi.StoreName] `json:"accountStore"`
}

// agentRetryAfter is when an anonymous client may repeat a login whose password check had no result.
const agentRetryAfter = time.Minute

// credentials are the parsed body of a login attempt.
type credentials struct {
	where    directoryapi.StoreName
	login    string
	password secure.Secret
}

// parse checks and parses the body of a login attempt
// (docs/interface/applications.md#login-attempts).
func (in LoginAttempt) parse() (c credentials, err error) {
	var errs field.Errors
	if !in.Type.Present {
		errs.Add(apierr.Required.Because("type is required: basic"))
	}
	if in.Value.Or("") == "" {
		errs.Add(apierr.Required.Because("value is required: the Base64 of the login name, a colon and the password"))
	}
	if err := errs.First(); err != nil {
		return c, err
	}
	if _, err := field.Enum(in.Type, "type", "basic", "basic"); err != nil {
		return c, err
	}
	if c.login, c.password, err = parseBasicValue(in.Value.Value); err != nil {
		return c, err
	}
	c.where, err = directoryapi.ReadStoreName(in.AccountStore, "accountStore")
	return c, err
}

// AttemptLogin logs an account in with the body of a login attempt. The checks are in
// checkLogin.
func (s *Service) AttemptLogin(ctx context.Context, application directoryapi.Ref,
	in LoginAttempt) (directoryapi.Account, error) {
	c, err := in.parse()
	if err != nil {
		return directoryapi.Account{}, err
	}
	logged, err := s.login(ctx, application, c.where, c.login, c.password)
	return logged.Account, err
}

// base64Encodings are the forms of Base64 that clients send: the standard and the URL-safe
// alphabet, with padding and without.
var base64Encodings = []*base64.Encoding{base64.StdEncoding, base64.URLEncoding, base64.RawStdEncoding,
	base64.RawURLEncoding}

// parseBasicValue parses the value of a login attempt, the Base64 of <login>:<password>. The
// login name ends at the first colon; the password may have colons.
func parseBasicValue(value secure.Secret) (login string, password secure.Secret, err error) {
	decoded, ok := decodeBase64(value)
	if !ok {
		return "", "", apierr.Format.Because("value is not Base64")
	}
	if !utf8.Valid(decoded) {
		return "", "", apierr.Encoding.Because("value is not the Base64 form of UTF-8 text")
	}
	login, rest, ok := strings.Cut(string(decoded), ":")
	if !ok || strings.ContainsRune(login, 0) {
		return "", "", apierr.Format.Because("value is not the Base64 form of <login>:<password>")
	}
	return login, secure.Secret(rest), nil
}

func decodeBase64(value secure.Secret) ([]byte, bool) {
	for _, encoding := range base64Encodings {
		if decoded, err := encoding.DecodeString(value.Reveal()); err == nil {
			return decoded, true
		}
	}
	return nil, false
}

// Login logs an account in by its password, for another service: the password grant, the
// hosted login and the Client API.
func (s *Service) Login(ctx context.Context, in applicationapi.Login) (applicationapi.LoggedIn, error) {
	ctx, span := telemetry.Span(ctx, "application.Login")
	defer span.End()
	application := directoryapi.Ref{Tenant: in.Tenant, ID: in.Application}
	return s.login(ctx, application, directoryapi.StoreName{Href: in.AccountStore.Href, NameKey: in.NameKey}, in.Login,
		in.Password)
}

// login logs an account in by its password, and writes the audit log.
func (s *Service) login(
	ctx context.Context, application directoryapi.Ref, where directoryapi.StoreName, login string,
	password secure.Secret,
) (applicationapi.LoggedIn, error) {
	a := s.throttle.NewAttempt(ctx, application, login)
	logged, err := s.checkLogin(ctx, &a, application, where, login, password)
	s.store.Usage.AddLogin(application.Tenant, err)
	if err != nil {
		s.noteFailure(ctx, application, login, a, err)
		return logged, err
	}
	auditLogin(ctx, "password", application, slog.String("account", logged.Account.ID.String()))
	return logged, nil
}

// checkLogin refuses a login after too many failures (lockout, package throttle), looks the account
// up and verifies its password (services/directory/login.go), counts the result, and follows
// the account links (linking.go).
func (s *Service) checkLogin(
	ctx context.Context, a *throttle.Attempt, application directoryapi.Ref, where directoryapi.StoreName, login string,
	password secure.Secret,
) (applicationapi.LoggedIn, error) {
	if !a.IsAddressed {
		s.noteMissingUserAddress(ctx, application)
	}
	order, counters, err := s.store.LoginOrderAndCounters(ctx, application.Tenant, application.ID, a.Pair)
	if err != nil {
		return applicationapi.LoggedIn{}, err
	}
	if order, err = s.narrowIfEnabled(ctx, application, order, where); err != nil {
		return applicationapi.LoggedIn{}, err
	}
	a.Stores = order.Stores()
	if err := s.throttle.Check(ctx, a, counters); err != nil {
		return applicationapi.LoggedIn{}, err
	}
	anonymous := caller.From(ctx).Key == ""
	authenticated, err := s.directories.Authenticate(ctx, directoryapi.Authenticate{
		Tenant: application.Tenant, Stores: a.Stores, Login: login, Password: password, Anonymous: anonymous,
	})
	if err == nil {
		err = s.checkStoreEnabled(ctx, order.EnabledStores(), authenticated)
	}
	err = s.throttle.RecordOutcome(ctx, a, err)
	if anonymous && apierr.IsOneOf(err, apierr.AgentFailures) {
		// The error codes of agents are for clients with an API key: to others they reveal that the account exists.
		err = apierr.Unavailable.Because("the agent of a directory does not answer; repeat the request later").
			WithRetryAfter(agentRetryAfter)
	}
	if err != nil {
		return applicationapi.LoggedIn{}, err
	}
	return s.followLinks(ctx, order, authenticated)
}

// CompleteLogin logs in an account that was authenticated by an assertion, a provider or a
// second factor, without a password.
func (s *Service) CompleteLogin(ctx context.Context, in applicationapi.CompleteLogin) (applicationapi.LoggedIn, error) {
	logged, err := s.completeLogin(ctx, in)
	if in.IsLogin {
		s.store.Usage.AddLogin(in.Tenant, err)
	}
	result := slog.String("account", logged.Account.ID.String())
	if err != nil {
		result = slog.Int("code", apierr.From(err).Code)
	}
	auditLogin(ctx, "other", directoryapi.Ref{Tenant: in.Tenant, ID: in.Application}, result)
	return logged, err
}

func (s *Service) completeLogin(ctx context.Context, in applicationapi.CompleteLogin) (applicationapi.LoggedIn, error) {
	order, err := s.store.CachedLoginOrder(ctx, in.Tenant, in.Application)
	if err != nil {
		return applicationapi.LoggedIn{}, err
	}
	request := applicationapi.CheckAccess{Tenant: in.Tenant, Application: in.Application, Account: in.Account}
	if _, err := s.checkAccessInOrder(ctx, request, order); err != nil {
		return applicationapi.LoggedIn{}, err
	}
	if where := (directoryapi.StoreName{Href: in.AccountStore.Href,
		NameKey: in.NameKey}); where != (directoryapi.StoreName{}) {
		if order, err = s.narrowLoginOrder(ctx, directoryapi.Ref{Tenant: in.Tenant, ID: in.Application}, order,
			where); err != nil {
			return applicationapi.LoggedIn{}, err
		}
		if _, err := s.checkAccess(ctx, request, order); err != nil {
			return applicationapi.LoggedIn{}, err
		}
	}
	account, err := s.directories.Account(ctx, directoryapi.Ref{Tenant: in.Tenant, ID: in.Account})
	if errors.Is(err, apierr.NotFound) {
		err = apierr.TokenAccountDisabled.Because("the account was deleted")
	}
	if err != nil {
		return applicationapi.LoggedIn{}, err
	}
	return s.followLinks(ctx, order, directoryapi.Authenticated{Account: account})
}

// checkStoreEnabled refuses an account all of whose account stores are mapped through disabled
// organizations. It is called after the password was verified: without the right password a
// client does not learn that the organization is disabled.
func (s *Service) checkStoreEnabled(ctx context.Context, enabled []directoryapi.Store,
	in directoryapi.Authenticated) error {
	if slices.Contains(enabled, in.Store) {
		return nil
	}
	of, err := s.directories.StoresOf(ctx, directoryapi.Ref{Tenant: in.Account.TenantID, ID: in.Account.ID})
	if err != nil {
		return err
	}
	if slices.ContainsFunc(of.Stores, func(store directoryapi.Store) bool { return slices.Contains(enabled, store) }) {
		return nil
	}
	return apierr.OrganizationDisabled.Because("the organization through which the account is reached is disabled")
}

// loginOrder returns the account store order of a login (the priority of account stores):
// the account stores of the application by their listIndex, with each organization replaced
// by its own account stores, or only the account store that where names.
func (s *Service) loginOrder(ctx context.Context, application directoryapi.Ref,
	where directoryapi.StoreName) (store.LoginOrder, error) {
	order, err := s.store.LoginOrder(ctx, application.Tenant, application.ID)
	if err != nil {
		return order, err
	}
	return s.narrowIfEnabled(ctx, application, order, where)
}

// narrowIfEnabled is narrowLoginOrder for an enabled application. For a disabled application it
// returns no account stores: a login gets the answer for an unknown user name, in the same
// time.
func (s *Service) narrowIfEnabled(
	ctx context.Context, application directoryapi.Ref, order store.LoginOrder, where directoryapi.StoreName,
) (store.LoginOrder, error) {
	if order.Status != directoryapi.Enabled {
		return store.LoginOrder{}, nil
	}
	return s.narrowLoginOrder(ctx, application, order, where)
}

// narrowLoginOrder returns the login order of the account store that where names, or the whole
// login order where it names none. An application without account stores is apierr.NoStores.
func (s *Service) narrowLoginOrder(
	ctx context.Context, application directoryapi.Ref, order store.LoginOrder, where directoryapi.StoreName,
) (store.LoginOrder, error) {
	switch {
	case where.Href != "":
		return s.narrowByHref(ctx, application, order, where.Href)
	case where.NameKey != "":
		return s.narrowByNameKey(ctx, application, order, where.NameKey)
	case len(order.Mapped) == 0:
		return order, apierr.NoStores.Because("the application has no account stores")
	}
	return order, nil
}

// narrowByHref narrows a login order to the account store of an href. A store that exists, but
// is not mapped to the application itself, is apierr.NotMapped; an unknown one is
// apierr.Reference.
func (s *Service) narrowByHref(
	ctx context.Context, application directoryapi.Ref, order store.LoginOrder, storeHref string,
) (store.LoginOrder, error) {
	unknown := apierr.Reference.Because("accountStore: there is no account store %q", storeHref)
	ref, ok := s.base.Parse(storeHref)
	if !ok || !slices.Contains(storeKinds, ref.Kind) {
		return order, unknown
	}
	found := directoryapi.Store{Kind: ref.Kind, ID: ref.ID}
	isOrganization := ref.Kind == organizationOwner.hrefKind()
	narrow := order.Filter(func(m store.MappedStore) bool {
		if isOrganization {
			return m.OrganizationID == ref.ID
		}
		return m.OrganizationID.IsZero() && m.Store() == found
	})
	switch {
	case len(narrow.Mapped) > 0 && isOrganization:
		return narrowToOrganization(narrow)
	case len(narrow.Mapped) > 0:
		return narrow, nil
	}
	_, err := s.findAccountStore(ctx, application.Tenant, found)
	if errors.Is(err, apierr.NotFound) {
		return narrow, unknown
	}
	if err != nil {
		return narrow, err
	}
	return narrow, apierr.NotMapped
}

// narrowByNameKey narrows a login order to the organization of a nameKey, with the errors of
// narrowByHref.
func (s *Service) narrowByNameKey(
	ctx context.Context, application directoryapi.Ref, order store.LoginOrder, nameKey string,
) (store.LoginOrder, error) {
	unknown := apierr.Reference.Because("accountStore: there is no organization with the nameKey %q", nameKey)
	key, err := hostLabel(field.Some(nameKey), "nameKey")
	if err != nil {
		return order, unknown
	}
	narrow := order.Filter(func(m store.MappedStore) bool { return m.NameKey == key })
	if len(narrow.Mapped) > 0 {
		return narrowToOrganization(narrow)
	}
	_, err = s.store.OrganizationByNameKey(ctx, application.Tenant, key)
	if errors.Is(err, apierr.NotFound) {
		return narrow, unknown
	}
	if err != nil {
		return narrow, err
	}
	return narrow, apierr.NotMapped
}

// narrowToOrganization returns the login order of the organization that a login names. order
// must have the account stores of that organization only. An organization that is disabled, or
// has no account stores, is refused.
func narrowToOrganization(order store.LoginOrder) (store.LoginOrder, error) {
	order = order.ForOrganization()
	switch {
	case order.Mapped[0].OrganizationStatus != directoryapi.Enabled:
		return order, apierr.OrganizationDisabled.Because("the organization is disabled")
	case len(order.Stores()) == 0:
		return order, apierr.OrgNoStores.Because("the organization has no account stores")
	}
	return order, nil
}
