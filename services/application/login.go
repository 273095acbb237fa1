package application

import (
	"context"
	"encoding/base64"
	"errors"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/application/store"
)

// LoginAttempt is the body that logs an account in.
type LoginAttempt struct {
	Type         field.Text                       `json:"type"`
	Value        field.Of[secure.Secret]          `json:"value"` // Base64 of <login>:<password>
	AccountStore field.Of[directoryapi.StoreName] `json:"accountStore"`
}

// credentials are the body of a login attempt that has been read.
type credentials struct {
	where    directoryapi.StoreName
	login    string
	password secure.Secret
}

// read checks the body of a login attempt
// (docs/interface/applications.md#login-attempts).
func (in LoginAttempt) read() (c credentials, err error) {
	var refused field.Refusals
	if !in.Type.Present {
		refused.Add(apierr.Required.Because("type is required: basic"))
	}
	if in.Value.Or("") == "" {
		refused.Add(apierr.Required.Because("value is required: the Base64 of the login name, a colon and the password"))
	}
	if err := refused.First(); err != nil {
		return c, err
	}
	if _, err := field.Enum(in.Type, "type", "basic", "basic"); err != nil {
		return c, err
	}
	if c.login, c.password, err = readBasic(in.Value.Value); err != nil {
		return c, err
	}
	c.where, err = directoryapi.ReadStoreName(in.AccountStore, "accountStore")
	return c, err
}

// Attempt logs an account in with the body of a login attempt.
func (s *Service) Attempt(ctx context.Context, application directoryapi.Ref, in LoginAttempt) (directoryapi.Account, error) {
	c, err := in.read()
	if err != nil {
		return directoryapi.Account{}, err
	}
	logged, err := s.login(ctx, application, c.where, c.login, c.password)
	return logged.Account, err
}

// encodings are the forms of Base64 that clients send: the standard and the
// URL-safe alphabet, with padding and without.
var encodings = []*base64.Encoding{base64.StdEncoding, base64.URLEncoding, base64.RawStdEncoding, base64.RawURLEncoding}

// readBasic reads the value of an attempt. The login ends at the first colon,
// so that a password may hold any number of them.
func readBasic(value secure.Secret) (login string, password secure.Secret, err error) {
	decoded, ok := decode(value)
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

func decode(value secure.Secret) ([]byte, bool) {
	for _, encoding := range encodings {
		if decoded, err := encoding.DecodeString(value.Reveal()); err == nil {
			return decoded, true
		}
	}
	return nil, false
}

// Login checks a password for a peer.
func (s *Service) Login(ctx context.Context, in applicationapi.Login) (applicationapi.LoggedIn, error) {
	application := directoryapi.Ref{Tenant: in.Tenant, ID: in.Application}
	return s.login(ctx, application, directoryapi.StoreName{Href: in.AccountStore.Href, NameKey: in.NameKey}, in.Login, in.Password)
}

// login logs in by a password.
func (s *Service) login(
	ctx context.Context, application directoryapi.Ref, where directoryapi.StoreName, login string, password secure.Secret,
) (applicationapi.LoggedIn, error) {
	logged, err := s.checkLogin(ctx, application, where, login, password)
	auditLogin(ctx, "password", application, logged, err)
	return logged, err
}

// checkLogin checks a password in the stores that are searched, unless too many have
// been wrong (throttle.go), and follows the links of the account that has it.
func (s *Service) checkLogin(
	ctx context.Context, application directoryapi.Ref, where directoryapi.StoreName, login string, password secure.Secret,
) (applicationapi.LoggedIn, error) {
	a := s.newAttempt(ctx, application.Tenant, login)
	order, counters, err := s.store.LoginOrderAndCounters(ctx, application.Tenant, application.ID, a.pair)
	if err == nil {
		order, err = s.open(ctx, application, order, where)
	}
	if err == nil {
		err = s.throttle(ctx, &a, counters)
	}
	if err != nil {
		return applicationapi.LoggedIn{}, err
	}
	in, err := s.directories.Authenticate(ctx, directoryapi.Authenticate{
		Tenant: application.Tenant, Stores: order.Stores(), Login: login, Password: password,
	})
	if err == nil {
		err = s.wantOpen(ctx, order.Open(), in)
	}
	if err := s.record(ctx, a, err); err != nil {
		return applicationapi.LoggedIn{}, err
	}
	return s.linked(ctx, order, in)
}

// CompleteLogin logs in an account that was authenticated otherwise than by its
// password.
func (s *Service) CompleteLogin(ctx context.Context, in applicationapi.CompleteLogin) (applicationapi.LoggedIn, error) {
	logged, err := s.completeLogin(ctx, in)
	auditLogin(ctx, "other", directoryapi.Ref{Tenant: in.Tenant, ID: in.Application}, logged, err)
	return logged, err
}

func (s *Service) completeLogin(ctx context.Context, in applicationapi.CompleteLogin) (applicationapi.LoggedIn, error) {
	order, err := s.store.CachedLoginOrder(ctx, in.Tenant, in.Application)
	if err != nil {
		return applicationapi.LoggedIn{}, err
	}
	asked := applicationapi.CheckAccess{Tenant: in.Tenant, Application: in.Application, Account: in.Account}
	account, ok := inDirectory(order, in)
	if !ok {
		access, err := s.checkAccessIn(ctx, asked, order)
		if err != nil {
			return applicationapi.LoggedIn{}, err
		}
		account = access.Account
	}
	if where := (directoryapi.StoreName{Href: in.AccountStore.Href, NameKey: in.NameKey}); where != (directoryapi.StoreName{}) {
		if order, err = s.narrowed(ctx, directoryapi.Ref{Tenant: in.Tenant, ID: in.Application}, order, where); err != nil {
			return applicationapi.LoggedIn{}, err
		}
		if account, ok = inDirectory(order, in); !ok {
			access, err := s.checkAccess(ctx, asked, order)
			if err != nil {
				return applicationapi.LoggedIn{}, err
			}
			account = access.Account
		}
	}
	return s.linked(ctx, order, directoryapi.Authenticated{Account: account})
}

// inDirectory returns an account that was just read, where the directory of it is open to
// logins of an enabled application.
func inDirectory(order store.LoginOrder, in applicationapi.CompleteLogin) (a directoryapi.Account, ok bool) {
	if in.Read == nil || in.Read.ID != in.Account || order.Status != directoryapi.Enabled {
		return a, false
	}
	return *in.Read, slices.Contains(order.Open(), directoryapi.Store{Kind: directoryapi.Directories, ID: in.Read.DirectoryID})
}

// wantOpen refuses an account that is reached through disabled organizations alone.
// Only a request with its password sees that.
func (s *Service) wantOpen(ctx context.Context, open []directoryapi.Store, in directoryapi.Authenticated) error {
	if slices.Contains(open, in.Store) {
		return nil
	}
	of, err := s.directories.StoresOf(ctx, directoryapi.Ref{Tenant: in.Account.TenantID, ID: in.Account.ID})
	if err != nil {
		return err
	}
	if slices.ContainsFunc(of.Stores, func(at directoryapi.Store) bool { return slices.Contains(open, at) }) {
		return nil
	}
	return apierr.OrganizationDisabled.Because("the organization through which the account is reached is disabled")
}

// searched returns the account store order of a login (the priority of account stores):
// the account stores of the application by their listIndex, organizations expanded into
// theirs, or the one account store that where names.
func (s *Service) searched(ctx context.Context, application directoryapi.Ref, where directoryapi.StoreName) (store.LoginOrder, error) {
	order, err := s.store.LoginOrder(ctx, application.Tenant, application.ID)
	if err != nil {
		return order, err
	}
	return s.open(ctx, application, order, where)
}

// open returns the part of an application's login order in which a login is looked for. A
// disabled application reaches nothing: its answer, and the work for it, are those
// of an unknown login.
func (s *Service) open(
	ctx context.Context, application directoryapi.Ref, order store.LoginOrder, where directoryapi.StoreName,
) (store.LoginOrder, error) {
	if order.Status != directoryapi.Enabled {
		return store.LoginOrder{}, nil
	}
	return s.narrowed(ctx, application, order, where)
}

// narrowed returns the part of an application's login order that a login names. One
// without stores is apierr.NoStores.
func (s *Service) narrowed(
	ctx context.Context, application directoryapi.Ref, order store.LoginOrder, where directoryapi.StoreName,
) (store.LoginOrder, error) {
	switch {
	case where.Href != "":
		return s.at(ctx, application, order, where.Href)
	case where.NameKey != "":
		return s.keyed(ctx, application, order, where.NameKey)
	case len(order.Mapped) == 0:
		return order, apierr.NoStores.Because("the application has no account stores")
	}
	return order, nil
}

// notMapped is a literal that old clients compare (docs/interface/errors.md#body).
const notMapped = "The specified Account Store is not one of the Application's assigned Account Stores."

// at narrows a login order to the store of an href. One that exists and is not mapped
// to the application itself is apierr.NotMapped, any other Reference.
func (s *Service) at(ctx context.Context, application directoryapi.Ref, order store.LoginOrder, named string) (store.LoginOrder, error) {
	unknown := apierr.Reference.Because("accountStore: there is no account store %q", named)
	ref, ok := s.base.Parse(named)
	if !ok || !slices.Contains(storeKinds, ref.Kind) {
		return order, unknown
	}
	found := directoryapi.Store{Kind: ref.Kind, ID: ref.ID}
	isOrganization := ref.Kind == organizations.name()
	narrow := order.Within(func(p store.MappedStore) bool {
		if isOrganization {
			return p.OrganizationID == ref.ID
		}
		return p.OrganizationID.IsZero() && p.Store() == found
	})
	switch {
	case len(narrow.Mapped) > 0 && isOrganization:
		return wantOrganization(narrow)
	case len(narrow.Mapped) > 0:
		return narrow, nil
	}
	_, err := s.accountStore(ctx, application.Tenant, found)
	if errors.Is(err, apierr.NotFound) {
		return narrow, unknown
	}
	if err != nil {
		return narrow, err
	}
	return narrow, apierr.NotMapped.Because(notMapped+" It is %q.", named)
}

// keyed narrows a login order to the organization of a key, as at does for an href.
func (s *Service) keyed(ctx context.Context, application directoryapi.Ref, order store.LoginOrder, named string) (store.LoginOrder, error) {
	unknown := apierr.Reference.Because("accountStore: there is no organization with the nameKey %q", named)
	key, err := hostLabel(field.Some(named), "nameKey")
	if err != nil {
		return order, unknown
	}
	narrow := order.Within(func(p store.MappedStore) bool { return p.NameKey == key })
	if len(narrow.Mapped) > 0 {
		return wantOrganization(narrow)
	}
	_, err = s.store.OrganizationOfKey(ctx, application.Tenant, key)
	if errors.Is(err, apierr.NotFound) {
		return narrow, unknown
	}
	if err != nil {
		return narrow, err
	}
	return narrow, apierr.NotMapped.Because(notMapped+" It is the organization with the nameKey %q.", named)
}

// wantOrganization returns the login order of an organization that a login names. It
// refuses that of one that is disabled or has no stores.
func wantOrganization(order store.LoginOrder) (store.LoginOrder, error) {
	order = order.Organization()
	switch {
	case order.Mapped[0].OrganizationStatus != directoryapi.Enabled:
		return order, apierr.OrganizationDisabled.Because("the organization is disabled")
	case len(order.Stores()) == 0:
		return order, apierr.OrgNoStores.Because("the organization has no account stores")
	}
	return order, nil
}
