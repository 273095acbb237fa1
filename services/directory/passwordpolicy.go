package directory

import (
	"context"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/services/directory/store"
)

// maxResetTokenTTL is the longest lifetime of a password reset token, in hours
// (docs/interface/accounts.md#password-reset).
const maxResetTokenTTL = 168

// PasswordPolicyChange is the body that updates a password policy, without its strength.
type PasswordPolicyChange struct {
	ResetTokenTTL           field.Int  `json:"resetTokenTtl"`
	ResetEmailStatus        field.Text `json:"resetEmailStatus"`
	ResetSuccessEmailStatus field.Text `json:"resetSuccessEmailStatus"`
}

// PasswordPolicy returns the password policy of a directory, or apierr.NotFound. What it requires
// of a password is validated in strength.go (length, complexity) and password.go (reuse, password
// history).
func (s *Service) PasswordPolicy(ctx context.Context, directory id.Ref) (store.PasswordPolicy, error) {
	return s.store.PasswordPolicy(ctx, directory.Tenant, directory.ID)
}

// UpdatePasswordPolicy changes what the body names: the lifetime of reset tokens and the mails of
// a password reset. UpdateStrength (strength.go) changes the strength. The policy of a mirror
// directory is read-only: apierr.MirroredProperty.
func (s *Service) UpdatePasswordPolicy(ctx context.Context, directory id.Ref,
	in PasswordPolicyChange) (store.PasswordPolicy, error) {
	return s.changePasswordPolicy(ctx, directory, func(p *store.PasswordPolicy) error {
		var errs field.Errors
		errs.Int(&p.ResetTokenTTL, in.ResetTokenTTL, "resetTokenTtl", 1, maxResetTokenTTL)
		errs.Enum(&p.ResetEmailStatus, in.ResetEmailStatus, "resetEmailStatus", directoryapi.Enabled,
			directoryapi.Disabled)
		errs.Enum(
			&p.ResetSuccessEmailStatus, in.ResetSuccessEmailStatus, "resetSuccessEmailStatus", directoryapi.Enabled,
			directoryapi.Disabled,
		)
		return errs.First()
	})
}

// changePasswordPolicy locks a policy, calls change on it and stores the result.
func (s *Service) changePasswordPolicy(ctx context.Context, directory id.Ref,
	change func(*store.PasswordPolicy) error) (store.PasswordPolicy, error) {
	var p store.PasswordPolicy
	if err := s.refuseMirrorPolicies(ctx, directory.Tenant, directory.ID); err != nil {
		return p, err
	}
	err := s.store.Tx(ctx, func(tx *store.Tx) (err error) {
		if p, err = tx.LockPasswordPolicy(ctx, directory.Tenant, directory.ID); err != nil {
			return err
		}
		if err := change(&p); err != nil {
			return err
		}
		p.ModifiedAt = s.now()
		return tx.UpdatePasswordPolicy(ctx, p)
	})
	return p, err
}
