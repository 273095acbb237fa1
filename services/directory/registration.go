package directory

import (
	"context"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/events"
	"github.com/doorward/doorward/services/directory/store"
)

// registrationPolicy returns the policy that a new account is validated against. It returns
// apierr.NotFound for the directory or the group, and apierr.MirrorReadOnly for a mirror
// directory. A disabled directory or group is apierr.AccountStoreDisabled where it is only the
// default account store of an application; where the request names it, accounts can be created in
// it.
func (s *Service) registrationPolicy(ctx context.Context,
	in directoryapi.CreateAccount) (store.RegistrationPolicy, error) {
	r, err := s.store.RegistrationPolicy(ctx, in.Tenant, in.Directory)
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
	if err != nil {
		return r, err
	}
	if group.DirectoryID != in.Directory {
		return r, apierr.NotFound
	}
	if group.Status != directoryapi.Enabled && !in.Application.IsZero() {
		return r, apierr.AccountStoreDisabled.Because("the group %q is disabled", group.Name)
	}
	return r, nil
}

// ApplyRegistrationWorkflow applies the registration workflow of the creation policy to a new
// account (self-service registration): where the email must be verified, it sets the status
// UNVERIFIED and makes the verification token. It returns the event that requests the verification
// or welcome mail, nil when no mail is sent, and what is stored of the token, nil without one.
func (s *Service) ApplyRegistrationWorkflow(a *directoryapi.Account, in directoryapi.CreateAccount,
	policy store.CreationPolicy) (*events.AccountRegistered, *store.EmailVerification) {
	if !in.Workflow || a.Status == directoryapi.Disabled || a.Status == directoryapi.Locked {
		return nil, nil
	}
	event := &events.AccountRegistered{
		Tenant: a.TenantID, Account: a.ID, Directory: a.DirectoryID, Application: in.Application,
	}
	if policy.VerificationEmailStatus == directoryapi.Enabled && a.EmailVerificationStatus != directoryapi.Verified {
		token, v := s.newVerification(a.ID, in.Application)
		a.Status, a.VerificationToken, a.VerificationSealed = directoryapi.Unverified, token, v.Sealed
		event.Token = v.Sealed
		return event, v
	}
	if policy.WelcomeEmailStatus == directoryapi.Enabled {
		return event, nil
	}
	return nil, nil
}
