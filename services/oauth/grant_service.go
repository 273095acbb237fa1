package oauth

import (
	"context"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/href"
)

// serviceGrant returns tokens for an assertion. One that is accepted is recorded as
// used before tokens or a demand for a second factor are made of it: after a failure
// its user has to log in again, and it never yields two pairs of tokens.
func (s *Service) serviceGrant(ctx context.Context, in TokenRequest) (Issued, error) {
	text, err := in.Form.required("token")
	if err != nil {
		return Issued{}, err
	}
	a, err := s.assertion(ctx, in, text)
	if err != nil {
		return Issued{}, refused(err, "invalid_client")
	}
	logged, err := s.peers.Application.CompleteLogin(ctx, applicationapi.CompleteLogin{
		Tenant: in.Tenant, Application: in.Application, Account: a.account, AccountStore: href.Link{Href: a.organization},
	})
	if err == nil {
		err = s.consume(ctx, in.Tenant, a)
	}
	if err != nil {
		return Issued{}, refused(err, "invalid_client")
	}
	return s.logIn(ctx, in, holder{logged.Account.ID, logged.Organization}, a.second)
}
