package directory

import (
	"context"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/events"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/directory/store"
)

// registrar is what decides about new accounts of a directory.
type registrar struct {
	creation store.CreationPolicy
}

// registrar gives what decides about a new account. It returns
// apierr.NotFound for the directory or the group, apierr.MirrorReadOnly for a
// mirror, and apierr.AccountStoreDisabled for a disabled store that a default
// led to; one that is named may be filled while it is disabled.
func (s *Service) registrar(ctx context.Context, in directoryapi.CreateAccount) (r registrar, err error) {
	d, err := s.store.Directory(ctx, in.Tenant, in.Directory)
	if err != nil {
		return r, err
	}
	if d.Mirror() {
		return r, apierr.MirrorReadOnly.Because("the directory %q mirrors another, where its accounts are made", d.Name)
	}
	if d.Status != directoryapi.Enabled && !in.Application.IsZero() {
		return r, apierr.AccountStoreDisabled.Because("the directory %q is disabled", d.Name)
	}
	if !in.Group.IsZero() {
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
	}
	r.creation, err = s.store.CreationPolicy(ctx, in.Tenant, in.Directory)
	return r, err
}

// register decides what the registration workflow does to a new account: the
// event that lets its mail go out, nil when no mail is wanted, and the proof of
// its email, nil when none is asked for.
func (s *Service) register(a *directoryapi.Account, in directoryapi.CreateAccount, policy store.CreationPolicy) (*events.AccountRegistered, *store.Verification) {
	if !in.Workflow || a.Status == directoryapi.Disabled {
		return nil, nil
	}
	event := &events.AccountRegistered{Tenant: a.TenantID, Account: a.ID, Directory: a.DirectoryID, Application: in.Application}
	if policy.VerificationEmailStatus == directoryapi.Enabled {
		token := secure.Token(22)
		expires := a.CreatedAt.Add(s.cfg.VerificationTTL)
		v := &store.Verification{Digest: secure.Digest(token), Sealed: s.ring.Seal(token, events.MailTokenPurpose(a.ID)), ExpiresAt: &expires}
		a.Status, a.VerificationToken, a.VerificationSealed = directoryapi.Unverified, token, v.Sealed
		event.Token = v.Sealed
		return event, v
	}
	if policy.WelcomeEmailStatus == directoryapi.Enabled {
		return event, nil
	}
	return nil, nil
}
