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
	LastSync  *lastSyncView     `json:"lastSync"`
	Directory href.Link         `json:"directory"`
	Download  href.Link         `json:"download"`
	Tenant    href.Link         `json:"tenant"`
}

type lastSyncView struct {
	StartedAt   rest.Time  `json:"startedAt"`
	CompletedAt *rest.Time `json:"completedAt"`
	Accounts    int64      `json:"accounts"`
	Groups      int64      `json:"groups"`
	Refused     int64      `json:"refused"`
	Absent      int64      `json:"absent"`
	Held        int64      `json:"held"`
}

func lastSync(l *store.LastSync) *lastSyncView {
	if l == nil {
		return nil
	}
	return &lastSyncView{
		rest.Time(l.StartedAt), (*rest.Time)(l.CompletedAt), l.Accounts, l.Groups, l.Refused, l.Absent, l.Held,
	}
}

func (v views) agent(a store.Agent) agentView {
	return agentView{
		Head: rest.NewHead(v.Base.To("agents", a.ID), a.CreatedAt, a.ModifiedAt),
		ID:   a.ID.String(), Status: a.Status, Config: a.Config, LastSync: lastSync(a.LastSync),
		Directory: v.Base.Link("directories", a.DirectoryID), Download: v.Base.Link("agents", a.ID,
			"download"), Tenant: v.Base.Link("tenants", a.TenantID),
	}
}
