package directory

import (
	"context"
	"errors"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/directory/store"
)

// EndedLink returns what is known of a mailed link that does not work any more: its token was used or has
// expired. The account is zero where it is no longer known, and only the tenant is. It returns apierr.NotFound for
// a token that never was.
func (s *Service) EndedLink(ctx context.Context, in directoryapi.EndedLink) (directoryapi.MailedLink, error) {
	if in.Workflow == directoryapi.Reset {
		verified, tenant, err := s.verifyResetSignature(ctx, directoryapi.ResetToken{Token: in.Token})
		if err != nil {
			return directoryapi.MailedLink{}, err
		}
		found, err := s.store.Reset(caller.WithTenant(ctx, tenant), tenant, verified.digest)
		if errors.Is(err, apierr.NotFound) {
			err = nil // purged, or the account was deleted
		}
		return mailedLink(tenant, found), err
	}
	digest := secure.Digest(in.Token)
	tenant, err := s.store.VerificationTenant(ctx, digest)
	if err != nil {
		return directoryapi.MailedLink{}, noVerification(err)
	}
	found, err := s.store.Verification(caller.WithTenant(ctx, tenant), tenant, digest)
	return mailedLink(tenant, found), noVerification(err)
}

func mailedLink(tenant id.ID, found store.MailedAccount) directoryapi.MailedLink {
	return directoryapi.MailedLink{Tenant: tenant, Account: found.Account, Application: found.ApplicationID}
}
