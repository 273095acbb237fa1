package oauth

import (
	"context"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/href"
)

// serviceGrant gives tokens for an assertion. One that is refused is not spent;
// one that is accepted is spent before anything is made of it, the demand for a
// second factor too: a failure after that costs its user another login, and
// never gives a second pair of tokens.
func (s *Service) serviceGrant(ctx context.Context, in TokenRequest) (Issued, error) {
	text, err := in.Form.required("token")
	if err != nil {
		return Issued{}, err
	}
	a, err := s.assertion(ctx, in, text)
	if err != nil {
		return Issued{}, refused(err, "invalid_client")
	}
	logged, err := s.peers.Application.Admit(ctx, applicationapi.Admit{
		Tenant: in.Tenant, Application: in.Application, Account: a.account, AccountStore: href.Link{Href: a.organization},
	})
	if err == nil {
		err = s.spend(ctx, in.Tenant, a)
	}
	if err != nil {
		return Issued{}, refused(err, "invalid_client")
	}
	return s.logIn(ctx, in, holder{logged.Account.ID, logged.Organization}, a.second)
}
