package rest

import (
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/rest"
	"github.com/doorward/doorward/services/directory/store"
)

type membershipView struct {
	rest.Head
	Account href.Link `json:"account"`
	Group   href.Link `json:"group"`
}

func (v views) membership(m store.Membership) membershipView {
	return membershipView{
		Head:    rest.NewHead(v.Base.To("groupMemberships", m.ID), m.CreatedAt, m.CreatedAt),
		Account: v.Base.Link("accounts", m.AccountID), Group: v.Base.Link(directoryapi.Groups, m.GroupID),
	}
}
