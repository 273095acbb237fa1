package rest

import (
	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/rest"
	"github.com/doorward/doorward/services/directory/store"
)

type agentView struct {
	rest.Head
	ID        string            `json:"id"`
	Status    string            `json:"status"`
	Config    store.AgentConfig `json:"config"`
	Directory href.Link         `json:"directory"`
	Download  href.Link         `json:"download"`
	Tenant    href.Link         `json:"tenant"`
}

func (v views) agent(a store.Agent) agentView {
	return agentView{
		Head: rest.Head{Href: v.base.To("agents", a.ID), CreatedAt: rest.Time(a.CreatedAt), ModifiedAt: rest.Time(a.ModifiedAt)},
		ID:   a.ID.String(), Status: a.Status, Config: a.Config,
		Directory: v.base.Link("directories", a.DirectoryID), Download: v.base.Link("agents", a.ID,
			"download"), Tenant: v.base.Link("tenants", a.TenantID),
	}
}
