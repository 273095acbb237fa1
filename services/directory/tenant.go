package directory

import (
	"context"
	"errors"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/customdata"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/services/directory/store"
)

// Tenant returns the tenant of that id. A caller's own is the only one that
// exists to it: any other is apierr.NotFound.
func (s *Service) Tenant(ctx context.Context, in id.Ref) (directoryapi.Tenant, error) {
	if in.Tenant != in.ID {
		return directoryapi.Tenant{}, apierr.NotFound
	}
	return s.store.Tenant(ctx, in.Tenant)
}

// TenantChange is the body that updates a tenant.
type TenantChange struct {
	Name       field.Text        `json:"name"`
	CustomData customdata.Change `json:"customData"`
}

// UpdateTenant changes what the body names.
func (s *Service) UpdateTenant(ctx context.Context, at id.Ref, in TenantChange) (directoryapi.Tenant, error) {
	tenant, err := s.Tenant(ctx, at)
	if err != nil {
		return tenant, err
	}
	err = s.store.Tx(ctx, func(tx *store.Tx) (err error) {
		if tenant, err = tx.LockTenant(ctx, at.Tenant); err != nil {
			return err
		}
		if err := tx.MergeData(ctx, at.Tenant, at.Tenant, in.CustomData.Value, s.now()); err != nil {
			return err
		}
		if in.Name.Present {
			if tenant.Name, err = field.Required(in.Name, "name", maxName); err != nil {
				return err
			}
		}
		if in.CustomData.Present && !in.Name.Present {
			return nil // which does not change its owner
		}
		tenant.ModifiedAt = s.now()
		return tx.UpdateTenant(ctx, tenant)
	})
	return tenant, err
}

// SignUp makes a tenant with its administrators directory and its owner's
// account, all or nothing (docs/interface/authentication.md#sign-up). The owner's email is
// verified only where a mail has confirmed the sign-up. A repeated call returns what the first made.
func (s *Service) SignUp(ctx context.Context, in directoryapi.SignUp) (directoryapi.SignedUp, error) {
	done, err := s.signedUp(ctx, in)
	if !errors.Is(err, apierr.NotFound) {
		return done, err
	}
	owner := directoryapi.Account{
		TenantID: in.Tenant, ID: in.Owner, DirectoryID: in.Directory, Username: in.Email, Email: in.Email,
		Status: directoryapi.Enabled, EmailVerificationStatus: directoryapi.Unverified, Owner: true,
	}
	hash := ""
	if in.Pending {
		v, err := s.store.SignUpOf(ctx, in.Tenant, in.Owner)
		if err != nil || v.PasswordHash == nil {
			return directoryapi.SignedUp{}, errors.Join(err, apierr.NotFound)
		}
		owner.Username, owner.Email, owner.GivenName, owner.Surname = v.Email, v.Email, v.GivenName, v.Surname
		owner.EmailVerificationStatus, hash = directoryapi.Verified, *v.PasswordHash
	}
	if in.Password != "" {
		if hash, err = s.passwords.Hash(ctx, in.Tenant, in.Password); err != nil {
			return directoryapi.SignedUp{}, err
		}
	}
	now := s.now()
	err = s.store.Tx(ctx, func(tx *store.Tx) error {
		tenant := directoryapi.Tenant{ID: in.Tenant, Key: in.Key, Name: in.Key, CreatedAt: now, ModifiedAt: now}
		if err := tx.InsertTenant(ctx, tenant); err != nil {
			return err
		}
		administrators := directoryapi.Directory{TenantID: in.Tenant, ID: in.Directory, Name: in.DirectoryName, Builtin: true, CreatedAt: now}
		if err := s.insertDirectory(ctx, tx, administrators); err != nil {
			return err
		}
		owner.PasswordModifiedAt, owner.CreatedAt, owner.ModifiedAt = beforeCreation(now), now, now
		return tx.InsertAccount(ctx, owner, hash, nil)
	})
	if err != nil && !errors.Is(err, apierr.Exists) {
		return directoryapi.SignedUp{}, err
	}
	done, again := s.signedUp(ctx, in) // also when another call was first
	if errors.Is(again, apierr.NotFound) && err != nil {
		return directoryapi.SignedUp{}, err
	}
	return done, again
}

// Owner returns the account of a tenant's owner, or apierr.NotFound.
func (s *Service) Owner(ctx context.Context, in id.Ref) (directoryapi.Account, error) {
	if in.Tenant != in.ID {
		return directoryapi.Account{}, apierr.NotFound
	}
	return s.store.Owner(ctx, in.Tenant)
}

func (s *Service) signedUp(ctx context.Context, in directoryapi.SignUp) (out directoryapi.SignedUp, err error) {
	if out.Tenant, err = s.store.Tenant(ctx, in.Tenant); err != nil {
		return out, err
	}
	if out.Directory, err = s.store.Directory(ctx, in.Tenant, in.Directory); err != nil {
		return out, err
	}
	out.Owner, err = s.store.Account(ctx, in.Tenant, in.Owner)
	return out, err
}
