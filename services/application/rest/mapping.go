package rest

import (
	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/rest"
	"github.com/doorward/doorward/services/application/store"
)

// mappingHead has the members that the mappings of applications and of organizations have in
// common.
type mappingHead struct {
	rest.Head
	ListIndex             int  `json:"listIndex"`
	IsDefaultAccountStore bool `json:"isDefaultAccountStore"`
	IsDefaultGroupStore   bool `json:"isDefaultGroupStore"`
}

type mappingView struct {
	mappingHead
	Application  href.Link `json:"application"`
	AccountStore href.Link `json:"accountStore"`
}

type organizationMappingView struct {
	mappingHead
	Organization href.Link `json:"organization"`
	AccountStore href.Link `json:"accountStore"`
}

func (v views) mapping(m store.Mapping) mappingView {
	return mappingView{v.mappingHead("accountStoreMappings", m), v.Base.Link(string(m.OwnerKind), m.OwnerID),
		v.Base.Link(m.StoreKind, m.StoreID)}
}

func (v views) organizationMapping(m store.Mapping) organizationMappingView {
	return organizationMappingView{v.mappingHead("organizationAccountStoreMappings", m),
		v.Base.Link(string(m.OwnerKind), m.OwnerID), v.Base.Link(m.StoreKind, m.StoreID)}
}

func (v views) mappingHead(collection string, m store.Mapping) mappingHead {
	return mappingHead{
		Head:      rest.NewHead(v.Base.To(collection, m.ID), m.CreatedAt, m.ModifiedAt),
		ListIndex: m.ListIndex, IsDefaultAccountStore: m.IsDefaultAccountStore,
		IsDefaultGroupStore: m.IsDefaultGroupStore,
	}
}
