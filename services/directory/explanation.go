package directory

import (
	"context"
	"errors"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
)

// ExplainLogin finds the account of a login as Authenticate does, and reports what
// stands in its way besides the password.
func (s *Service) ExplainLogin(ctx context.Context, in directoryapi.ExplainLogin) (out directoryapi.ExplainedLogin, err error) {
	if out.Stores, err = s.store.NamedStores(ctx, in.Tenant, in.Stores); err != nil {
		return out, err
	}
	found, err := s.store.FindLogin(ctx, in.Tenant, in.Stores, in.Login)
	if errors.Is(err, apierr.NotFound) {
		out.Refusal = errNoAccount
		return out, nil
	}
	if err != nil {
		return out, err
	}
	if found.PasswordHash == "" {
		out.Refusal = apierr.WrongPassword.Because("the account has no password")
	} else if refusal := admits(found); refusal != nil {
		out.Refusal = apierr.From(refusal)
	}
	out.Found = &directoryapi.Authenticated{Account: found.Account, Store: directoryapi.Store{Kind: found.StoreKind, ID: found.StoreID}}
	return out, nil
}
