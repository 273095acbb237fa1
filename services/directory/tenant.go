package directory

import (
	"context"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/customdata"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/services/directory/store"
)

// CheckTenant returns apierr.NotFound for another tenant than the caller's (tenant isolation).
func CheckTenant(in id.Ref) error {
	if in.Tenant != in.ID {
		return apierr.NotFound
	}
	return nil
}

// Tenant returns the caller's tenant, or apierr.NotFound.
func (s *Service) Tenant(ctx context.Context, in id.Ref) (directoryapi.Tenant, error) {
	if err := CheckTenant(in); err != nil {
		return directoryapi.Tenant{}, err
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
		if err := tx.MergeCustomData(ctx, at.Tenant, at.Tenant, in.CustomData.Value, s.now()); err != nil {
			return err
		}
		if in.Name.Present {
			if tenant.Name, err = field.Required(in.Name, "name", MaxName); err != nil {
				return err
			}
		}
		if in.CustomData.Present && !in.Name.Present {
			return nil // custom data alone do not change modifiedAt of the tenant
		}
		tenant.ModifiedAt = s.now()
		return tx.UpdateTenant(ctx, tenant)
	})
	return tenant, err
}

// Owner returns the account of the tenant's owner, or apierr.NotFound.
func (s *Service) Owner(ctx context.Context, in id.Ref) (directoryapi.Account, error) {
	if err := CheckTenant(in); err != nil {
		return directoryapi.Account{}, err
	}
	return s.store.Owner(ctx, in.Tenant)
}
