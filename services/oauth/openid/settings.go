package openid

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
	maxDuration     = 3653 * 24 * time.Hour // ten years have at most three leap days
)

// tenant returns the tenant of the caller, or apierr.NotFound for any other.
func (s *Service) tenant(ctx context.Context, tenant id.Ref) (directoryapi.Tenant, error) {
	if tenant.ID != tenant.Tenant {
		return directoryapi.Tenant{}, apierr.NotFound
	}
	return s.Directory.Tenant(ctx, tenant)
}

// Settings returns the settings of a tenant, or apierr.NotFound for another tenant than that of the caller.
func (s *Service) Settings(ctx context.Context, tenant id.Ref) (store.OpenIDSettings, error) {
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
func (s *Service) storedSettings(ctx context.Context, tenant id.ID) (store.OpenIDSettings, error) {
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
func (s *Service) UpdateSettings(ctx context.Context, tenant id.Ref, in SettingsChange) (store.OpenIDSettings, error) {
	v, err := s.Settings(ctx, tenant)
	if err != nil {
		return v, err
	}
	if in.SigningKeyRotation.Null {
		v.SigningKeyRotation = nil
	} else if in.SigningKeyRotation.Present {
		text, err := duration(in.SigningKeyRotation, "signingKeyRotation", minRotation, maxDuration)
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

func (s *Service) rotationPeriod(ctx context.Context, tenant id.ID) (period, error) {
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

// duration checks an ISO 8601 duration and returns its text unchanged. A longer one than most is
// apierr.AfterMaximum, a shorter one than least apierr.BelowMinimum.
func duration(in field.Text, name string, least, most time.Duration) (string, error) {
	text, err := field.Required(in, name, 255)
	if err != nil {
		return "", err
	}
	d, err := field.ParseDuration(text)
	switch {
	case err != nil:
		return "", apierr.Format.Because("%s: %s", name, apierr.From(err).Reason)
	case d < least:
		return "", apierr.BelowMinimum.Because("%s must be at least %s", name, least)
	case d > most:
		return "", apierr.AfterMaximum.Because("%s must be at most %s", name, most)
	}
	return text, nil
}
