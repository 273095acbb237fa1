package application

import (
	"context"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/services/application/store"
)

// LiftLockout resets the counters of failed logins of an account's login names (package throttle). The counters of
// addresses stay: they count the logins of others too.
func (s *Service) LiftLockout(ctx context.Context, ref directoryapi.Ref) error {
	account, err := s.directories.Account(ctx, ref)
	if err != nil {
		return err
	}
	names := []string{s.throttle.LoginHash(ref.Tenant, account.Username),
		s.throttle.LoginHash(ref.Tenant, account.Email)}
	return s.store.Tx(ctx, func(tx *store.Tx) error { return tx.ResetFailures(ctx, ref.Tenant, names, s.now()) })
}
