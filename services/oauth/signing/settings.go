package signing

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/services/oauth/store"
)

// The default and the limits of the time between two rotations of a signing key. A successor is published
// KeySetMaxAge before it signs.
const (
	defaultRotation = "P90D"
	minRotation     = 2 * KeySetMaxAge
	// MaxDuration bounds the durations of settings.
	MaxDuration = 3653 * 24 * time.Hour // ten years have at most three leap days
)

// tenant returns the tenant of the caller, or apierr.NotFound for any other.
func (s *Signer) tenant(ctx context.Context, tenant id.Ref) (directoryapi.Tenant, error) {
	if tenant.ID != tenant.Tenant {
		return directoryapi.Tenant{}, apierr.NotFound
	}
	return s.Directory.Tenant(ctx, tenant)
}

// Settings returns the settings of a tenant, or apierr.NotFound for another tenant than that of the caller.
func (s *Signer) Settings(ctx context.Context, tenant id.Ref) (store.OpenIDSettings, error) {
	owner, err := s.tenant(ctx, tenant)
	if err != nil {
		return store.OpenIDSettings{}, err
	}
	v, err := s.storedSettings(ctx, tenant.ID)
	if v.CreatedAt.IsZero() {
		v.CreatedAt, v.ModifiedAt = owner.CreatedAt, owner.CreatedAt
	}
	return v, err
}

// storedSettings returns the settings of a tenant; where they were never changed, the default without times.
func (s *Signer) storedSettings(ctx context.Context, tenant id.ID) (store.OpenIDSettings, error) {
	v, err := s.Store.OpenIDSettings(ctx, tenant)
	if errors.Is(err, apierr.NotFound) {
		rotation := defaultRotation
		return store.OpenIDSettings{TenantID: tenant, SigningKeyRotation: &rotation}, nil
	}
	return v, err
}

// SettingsChange is the body that updates the settings of a tenant.
type SettingsChange struct {
	SigningKeyRotation field.Text `json:"signingKeyRotation"`
}

// UpdateSettings changes the settings of a tenant. The keys that sign now are rotated by the new ones.
func (s *Signer) UpdateSettings(ctx context.Context, tenant id.Ref, in SettingsChange) (store.OpenIDSettings, error) {
	v, err := s.Settings(ctx, tenant)
	if err != nil {
		return v, err
	}
	if in.SigningKeyRotation.Null {
		v.SigningKeyRotation = nil
	} else if in.SigningKeyRotation.Present {
		text, err := field.Duration(in.SigningKeyRotation, "signingKeyRotation", minRotation, MaxDuration)
		if err != nil {
			return v, err
		}
		v.SigningKeyRotation = &text
	}
	v.ModifiedAt = s.Now()
	rotation, err := rotationOf(v)
	if err != nil {
		return v, err
	}
	return v, s.Store.Tx(ctx, func(tx *store.Tx) error {
		if err := tx.PutOpenIDSettings(ctx, v); err != nil {
			return err
		}
		keys, err := tx.LockSigningKeys(ctx, tenant.ID)
		for i := 0; i < len(keys) && err == nil; i++ {
			if k := keys[i]; k.Status == store.KeyActive {
				k.RotateAt = rotation.after(*k.ActiveAt)
				err = tx.UpdateSigningKey(ctx, k)
			}
		}
		return err
	})
}

// period is the time between two rotations; zero: none.
type period time.Duration

// after returns when the successor of a key is to be published that signs since a time.
func (p period) after(active time.Time) *time.Time {
	if p == 0 {
		return nil
	}
	at := active.Add(time.Duration(p) - KeySetMaxAge)
	return &at
}

func (s *Signer) rotationPeriod(ctx context.Context, tenant id.ID) (period, error) {
	v, err := s.storedSettings(ctx, tenant)
	if err != nil {
		return 0, err
	}
	return rotationOf(v)
}

func rotationOf(v store.OpenIDSettings) (period, error) {
	if v.SigningKeyRotation == nil {
		return 0, nil
	}
	d, err := field.ParseDuration(*v.SigningKeyRotation)
	if err != nil {
		return 0, fmt.Errorf("read the OpenID settings of %s: %w", v.TenantID, err)
	}
	return period(d), nil
}
