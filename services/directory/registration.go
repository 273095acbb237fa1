package directory

import (
	"context"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/events"
	"github.com/doorward/doorward/services/directory/store"
)

// registrar returns the policies that a new account is checked against. It returns
// apierr.NotFound for the directory or the group, apierr.MirrorReadOnly for a mirror, and
// apierr.AccountStoreDisabled for a disabled store that a default led to; one that is named
// may be filled while it is disabled.
func (s *Service) registrar(ctx context.Context, in directoryapi.CreateAccount) (store.Registrar, error) {
	r, err := s.store.Registrar(ctx, in.Tenant, in.Directory)
	if err != nil {
		return r, err
	}
	if r.ProviderID != directoryapi.Native {
		return r, apierr.MirrorReadOnly.Because("the directory %q mirrors another, where its accounts are made", r.Name)
	}
	if r.Status != directoryapi.Enabled && !in.Application.IsZero() {
		return r, apierr.AccountStoreDisabled.Because("the directory %q is disabled", r.Name)
	}
	if in.Group.IsZero() {
		return r, nil
	}
	group, err := s.store.Group(ctx, in.Tenant, in.Group)
	if err == nil && group.DirectoryID != in.Directory {
		err = apierr.NotFound
	}
	if err == nil && group.Status != directoryapi.Enabled && !in.Application.IsZero() {
		err = apierr.AccountStoreDisabled.Because("the group %q is disabled", group.Name)
	}
	return r, err
}

// register decides what the registration workflow does to a new account: it returns the event
// that requests its mail, nil when no mail is sent, and the verification of its email, nil
// when none is required.
func (s *Service) register(a *directoryapi.Account, in directoryapi.CreateAccount,
	policy store.CreationPolicy) (*events.AccountRegistered, *store.Verification) {
	if !in.Workflow || a.Status == directoryapi.Disabled || a.Status == directoryapi.Locked {
		return nil, nil
	}
	event := &events.AccountRegistered{Tenant: a.TenantID, Account: a.ID, Directory: a.DirectoryID, Application: in.Application}
	if policy.VerificationEmailStatus == directoryapi.Enabled && a.EmailVerificationStatus != directoryapi.Verified {
		token, v := s.newVerification(a.ID)
		a.Status, a.VerificationToken, a.VerificationSealed = directoryapi.Unverified, token, v.Sealed
		event.Token = v.Sealed
		return event, v
	}
	if policy.WelcomeEmailStatus == directoryapi.Enabled {
		return event, nil
	}
	return nil, nil
}
