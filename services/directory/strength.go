package directory

import (
	"context"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/services/directory/store"
)

// maxPreventReuse is how many former passwords a directory remembers at most.
const maxPreventReuse = 25

// StrengthChange is the body that updates a password strength.
type StrengthChange struct {
	MinLength    field.Int `json:"minLength"`
	MaxLength    field.Int `json:"maxLength"`
	MinLowerCase field.Int `json:"minLowerCase"`
	MinUpperCase field.Int `json:"minUpperCase"`
	MinNumeric   field.Int `json:"minNumeric"`
	MinSymbol    field.Int `json:"minSymbol"`
	MinDiacritic field.Int `json:"minDiacritic"`
	PreventReuse field.Int `json:"preventReuse"`
}

// UpdateStrength changes what the body names of a policy's strength, unless no
// password could meet the outcome: apierr.StrengthContradicts. That of a mirror
// is apierr.MirroredProperty.
func (s *Service) UpdateStrength(ctx context.Context, directory id.Ref, in StrengthChange) (store.PasswordPolicy, error) {
	return s.changePasswordPolicy(ctx, directory, func(p *store.PasswordPolicy) error {
		var refused field.Refusals
		refused.Whole(&p.MinLength, in.MinLength, "minLength", 1, maxPassword)
		refused.Whole(&p.MaxLength, in.MaxLength, "maxLength", 1, maxPassword)
		refused.Whole(&p.MinLowerCase, in.MinLowerCase, "minLowerCase", 0, maxPassword)
		refused.Whole(&p.MinUpperCase, in.MinUpperCase, "minUpperCase", 0, maxPassword)
		refused.Whole(&p.MinNumeric, in.MinNumeric, "minNumeric", 0, maxPassword)
		refused.Whole(&p.MinSymbol, in.MinSymbol, "minSymbol", 0, maxPassword)
		refused.Whole(&p.MinDiacritic, in.MinDiacritic, "minDiacritic", 0, maxPassword)
		refused.Whole(&p.PreventReuse, in.PreventReuse, "preventReuse", 0, maxPreventReuse)
		if err := refused.First(); err != nil {
			return err
		}
		return checkContradiction(*p)
	})
}

// checkContradiction refuses a strength whose lower bounds exceed maxLength
// (docs/interface/limits.md#field-limits).
func checkContradiction(p store.PasswordPolicy) error {
	if p.MinLength > p.MaxLength {
		return apierr.StrengthContradicts.Because("minLength would be %d and maxLength %d", p.MinLength, p.MaxLength)
	}
	if sum := p.MinLowerCase + p.MinUpperCase + p.MinNumeric + p.MinSymbol + p.MinDiacritic; sum > p.MaxLength {
		return apierr.StrengthContradicts.Because("the minimums of the character classes would add up to %d and maxLength be %d", sum,
			p.MaxLength)
	}
	return nil
}
