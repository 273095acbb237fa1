package rest

import (
	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/mappingrule"
)

// MappingRulesView is the representation of mapping rules
// (docs/interface/directories.md#mapping-rules).
type MappingRulesView struct {
	Head
	Items []any `json:"items"`
}

type userInfoRuleView struct {
	Name              *string  `json:"name"`
	AccountAttributes []string `json:"accountAttributes"`
}

// MappingRules renders mapping rules.
func MappingRules(base href.Base) func(mappingrule.Rules) MappingRulesView {
	return func(r mappingrule.Rules) MappingRulesView {
		view := MappingRulesView{
			Head: Head{Href: base.To(string(r.Kind), r.ID), CreatedAt: Time(r.CreatedAt),
				ModifiedAt: Time(r.ModifiedAt)},
			Items: make([]any, len(r.Items)),
		}
		for i, rule := range r.Items {
			if view.Items[i] = rule; r.Kind == mappingrule.UserInfo {
				view.Items[i] = userInfoRuleView{rule.Name, rule.AccountAttributes}
			}
		}
		return view
	}
}
