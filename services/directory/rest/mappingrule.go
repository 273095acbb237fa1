package rest

import (
	"github.com/doorward/doorward/pkg/rest"
	"github.com/doorward/doorward/services/directory/store"
)

type mappingRulesView struct {
	rest.Head
	Items []any `json:"items"`
}

type userInfoRuleView struct {
	Name              *string  `json:"name"`
	AccountAttributes []string `json:"accountAttributes"`
}

func (v views) mappingRules(r store.MappingRules) mappingRulesView {
	view := mappingRulesView{
		Head:  rest.Head{Href: v.base.To(string(r.Kind), r.ID), CreatedAt: rest.Time(r.CreatedAt), ModifiedAt: rest.Time(r.ModifiedAt)},
		Items: make([]any, len(r.Items)),
	}
	for i, rule := range r.Items {
		if view.Items[i] = rule; r.Kind == store.UserInfo {
			view.Items[i] = userInfoRuleView{rule.Name, rule.AccountAttributes}
		}
	}
	return view
}
