package application

import (
	"context"
	"errors"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
)

// Standing tells whether an account may act through the application now. That
// the application is disabled comes second: after the account's own state and
// before that of its store (resolutions, section 12.6).
func (s *Service) Standing(ctx context.Context, in applicationapi.Standing) (directoryapi.Account, error) {
	reach, err := s.store.Reach(ctx, in.Tenant, in.Application)
	if err != nil {
		return directoryapi.Account{}, err
	}
	account, err := s.directories.Standing(ctx, directoryapi.Standing{Tenant: in.Tenant, Account: in.Account, Stores: reach.Stores()})
	known := err == nil || errors.Is(err, apierr.TokenStoreDisabled) || errors.Is(err, apierr.TokenAccountUnreachable)
	if known && reach.Status != directoryapi.Enabled {
		return directoryapi.Account{}, apierr.TokenApplicationDisabled.Because("the application is disabled")
	}
	return account, err
}
