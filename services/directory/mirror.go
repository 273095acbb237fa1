package directory

import (
	"context"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/services/directory/store"
)

// refuseMirrorPolicies returns apierr.MirroredProperty for a mirror directory, whose policies and
// email templates are read-only (docs/interface/directories.md#creation) but for the domains of its
// account creation policy (creationpolicy.go).
func (s *Service) refuseMirrorPolicies(ctx context.Context, tenant, directory id.ID) error {
	d, err := s.store.Directory(ctx, tenant, directory)
	if err != nil || !d.Mirror() {
		return err
	}
	return apierr.MirroredProperty.Because(
		"the directory %q is a mirror; its password policy and its email templates are read-only", d.Name)
}

// refuseMirror returns apierr.MirroredProperty for a mirror directory: what is read-only there is
// changed in its source.
func refuseMirror(ctx context.Context, tx *store.Tx, tenant, directory id.ID, what string) error {
	d, err := tx.LockDirectoryShared(ctx, tenant, directory)
	if err != nil || !d.Mirror() {
		return err
	}
	return apierr.MirroredProperty.Because("the directory %q is a mirror; %s are changed in its source", d.Name, what)
}

// mirroredPropertyError is the error for a change of a property that a mirror directory copies
// from its source.
func mirroredPropertyError(name string) error {
	return apierr.MirroredProperty.Because("%s is copied from the directory that this one mirrors; change it there",
		name)
}

// UnusedMember is the error for a member that the type of a provider does not have.
func UnusedMember(name string) error {
	return apierr.UnusedProperty.Because("a provider of this type has no %s", name)
}

// recordAssignedStatus records the status that an administrator assigns to a mirrored account.
// While the source has disabled the account or no longer has it, its effective status stays DISABLED.
func recordAssignedStatus(ctx context.Context, tx *store.Tx, a *directoryapi.Account) error {
	disabled, err := tx.SetAssignedStatus(ctx, a.TenantID, a.ID, a.Status)
	if disabled {
		a.Status = directoryapi.Disabled
	}
	return err
}
