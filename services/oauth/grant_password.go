package oauth

import (
	"cmp"
	"context"
	"slices"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/secure"
)

// passwordGrant is the grant type password (RFC 6749, section 4.3). It logs an account in
// by the rules and errors of a login attempt, which are in services/application/login.go.
func (s *Service) passwordGrant(ctx context.Context, in TokenRequest) (IssuedTokens, error) {
	login, noLogin := in.Form.required("username")
	password, noPassword := in.Form.required("password")
	if err := field.First(noLogin, noPassword); err != nil {
		return IssuedTokens{}, err
	}
	where, err := in.Form.accountStore()
	if err != nil {
		return IssuedTokens{}, err
	}
	logged, err := s.peers.Application.Login(ctx, applicationapi.Login{
		Tenant: in.Tenant, Application: in.Application, Login: login.Reveal(), Password: password,
		AccountStore: where.href, NameKey: where.nameKey,
	})
	if err != nil {
		return IssuedTokens{}, loginRefusal(err)
	}
	return s.completeLogin(ctx, in, subject{account: logged.Account.ID, organization: logged.Organization}, secondStep{})
}

// loginRefusal adds the member error to the refusal of a login by password: invalid_grant for wrong
// credentials and for an account that may not log in (RFC 6749, section 5.2), else invalid_request.
func loginRefusal(err error) error {
	if apierr.IsLoginRefusal(err) {
		return withOAuthError(err, "invalid_grant")
	}
	return withOAuthError(err, "invalid_request")
}

// accountStore is the only account store in which a login is looked up, or the zero value.
type accountStore struct {
	href    href.Link
	nameKey string // of an organization
}

// accountStore returns the account store that the form names. It may name the same store in
// several fields, but not different ones.
func (f Form) accountStore() (accountStore, error) {
	var named []secure.Secret
	for _, name := range []string{"accountStore", "organizationNameKey", "nameKey"} {
		if f[name] != "" && !slices.Contains(named, f[name]) {
			named = append(named, f[name])
		}
	}
	if len(named) > 1 {
		refusal := apierr.Invalid.Because("accountStore, organizationNameKey and nameKey name different account stores")
		return accountStore{}, withOAuthError(refusal, "invalid_request")
	}
	if f["accountStore"] != "" {
		return accountStore{href: href.Link{Href: f["accountStore"].Reveal()}}, nil
	}
	return accountStore{nameKey: cmp.Or(f["organizationNameKey"], f["nameKey"]).Reveal()}, nil
}
