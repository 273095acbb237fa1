package directory

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/id"
)

// ExplainLogin finds the account of a login as Authenticate does, and reports why it would be
// refused with the right password. It compares no password.
func (s *Service) ExplainLogin(ctx context.Context,
	in directoryapi.ExplainLogin) (out directoryapi.ExplainedLogin, err error) {
	if out.Stores, err = s.store.NamedStores(ctx, in.Tenant, in.Stores); err != nil {
		return out, err
	}
	found, err := s.store.FindLogin(ctx, in.Tenant, in.Stores, in.Login)
	if errors.Is(err, apierr.NotFound) {
		out.Refusal = apierr.NoSuchAccount
		return out, nil
	}
	if err != nil {
		return out, err
	}
	if found.PasswordHash == "" {
		out.Refusal = apierr.WrongPassword.Because("the account has no password%s",
			providerHint(out.Stores, found.DirectoryID))
	} else if refusal := s.checkPasswordLogin(ctx, found); refusal != nil {
		if !apierr.IsRefusal(refusal) {
			return out, refusal
		}
		out.Refusal = apierr.From(refusal)
	}
	out.Found = &directoryapi.Authenticated{
		Account: found.Account, Store: directoryapi.Store{Kind: found.StoreKind, ID: found.StoreID},
	}
	return out, nil
}

// providerHint names the provider at which the accounts of a mirror directory log in; empty for a
// cloud directory.
func providerHint(stores []directoryapi.NamedStore, directory id.ID) string {
	i := slices.IndexFunc(stores, func(s directoryapi.NamedStore) bool { return s.DirectoryID == directory })
	if i < 0 || stores[i].ProviderID == directoryapi.Native {
		return ""
	}
	return fmt.Sprintf("; it logs in at the provider %q of its directory", stores[i].ProviderID)
}
