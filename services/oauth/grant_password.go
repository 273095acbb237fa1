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

// passwordGrant logs an account in (RFC 6749, section 4.3) by the rules and
// errors of a login attempt.
func (s *Service) passwordGrant(ctx context.Context, in TokenRequest) (Issued, error) {
	login, noLogin := in.Form.required("username")
	password, noPassword := in.Form.required("password")
	if err := field.First(noLogin, noPassword); err != nil {
		return Issued{}, err
	}
	where, err := in.Form.accountStore()
	if err != nil {
		return Issued{}, err
	}
	logged, err := s.peers.Application.Login(ctx, applicationapi.Login{
		Tenant: in.Tenant, Application: in.Application, Login: login.Reveal(), Password: password,
		AccountStore: where.href, NameKey: where.nameKey,
	})
	if err != nil {
		return Issued{}, refused(err, "invalid_request")
	}
	return s.logIn(ctx, in, holder{logged.Account.ID, logged.Organization}, secondStep{})
}

// accountStore is the store that the form restricts a login to, if any.
type accountStore struct {
	href    href.Link
	nameKey string // of an organization
}

// accountStore reads the fields that restrict a login, which must not contradict
// each other.
func (f Form) accountStore() (accountStore, error) {
	var named []secure.Secret
	for _, name := range []string{"accountStore", "organizationNameKey", "nameKey"} {
		if f[name] != "" && !slices.Contains(named, f[name]) {
			named = append(named, f[name])
		}
	}
	if len(named) > 1 {
		return accountStore{}, refused(apierr.Invalid.Because("accountStore, organizationNameKey and nameKey name different account stores"),
			"invalid_request")
	}
	if f["accountStore"] != "" {
		return accountStore{href: href.Link{Href: f["accountStore"].Reveal()}}, nil
	}
	return accountStore{nameKey: cmp.Or(f["organizationNameKey"], f["nameKey"]).Reveal()}, nil
}
