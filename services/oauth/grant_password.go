package oauth

import (
	"context"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/href"
)

// passwordGrant logs an account in (RFC 6749, section 4.3) by the rules and
// errors of a login attempt.
func (s *Service) passwordGrant(ctx context.Context, in TokenRequest) (Issued, error) {
	login, err := in.Form.required("username")
	if err != nil {
		return Issued{}, err
	}
	password, err := in.Form.required("password")
	if err != nil {
		return Issued{}, err
	}
	for _, name := range []string{"nameKey", "organizationNameKey"} {
		if in.Form[name] != "" {
			// A login that names an organization must not reach beyond it.
			return Issued{}, refused(apierr.Reference.Because("%s names no organization of the tenant", name), "invalid_request")
		}
	}
	logged, err := s.peers.Application.Login(ctx, applicationapi.Login{
		Tenant: in.Tenant, Application: in.Application, Login: login.Reveal(), Password: password,
		AccountStore: href.Link{Href: in.Form["accountStore"].Reveal()},
	})
	if err != nil {
		return Issued{}, refused(err, "invalid_request")
	}
	return s.issue(ctx, in, logged.Account.ID, true)
}
