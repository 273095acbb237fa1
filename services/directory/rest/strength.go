package rest

import (
	"github.com/doorward/doorward/pkg/rest"
	"github.com/doorward/doorward/services/directory/store"
)

type strengthView struct {
	rest.Head
	MinLength    int `json:"minLength"`
	MaxLength    int `json:"maxLength"`
	MinLowerCase int `json:"minLowerCase"`
	MinUpperCase int `json:"minUpperCase"`
	MinNumeric   int `json:"minNumeric"`
	MinSymbol    int `json:"minSymbol"`
	MinDiacritic int `json:"minDiacritic"`
	PreventReuse int `json:"preventReuse"`
}

// strength shows the strength of a password policy, which is a resource of its own, with the times
// of the policy.
func (v views) strength(p store.PasswordPolicy) strengthView {
	return strengthView{
		Head:      rest.NewHead(v.Base.To("passwordPolicies", p.DirectoryID, "strength"), p.CreatedAt, p.ModifiedAt),
		MinLength: p.MinLength, MaxLength: p.MaxLength, MinLowerCase: p.MinLowerCase, MinUpperCase: p.MinUpperCase,
		MinNumeric: p.MinNumeric, MinSymbol: p.MinSymbol, MinDiacritic: p.MinDiacritic, PreventReuse: p.PreventReuse,
	}
}
