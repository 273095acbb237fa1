package directoryapi

import (
	"time"

	"github.com/doorward/doorward/pkg/customdata"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/list"
)

// Group is a named set of accounts of one directory. The files that a new field touches are listed
// in docs/howto.md#add-a-field.
type Group struct {
	TenantID    id.ID     `json:"tenantId"`
	ID          id.ID     `json:"id"`
	DirectoryID id.ID     `json:"directoryId"`
	Name        string    `json:"name"`
	Description *string   `json:"description"`
	Status      string    `json:"status"` // Enabled or Disabled
	CreatedAt   time.Time `json:"createdAt"`
	ModifiedAt  time.Time `json:"modifiedAt"`
}

// Times returns the times of the collections below the group.
func (g Group) Times() (createdAt, modifiedAt time.Time) { return g.CreatedAt, g.ModifiedAt }

// NewGroup is the body that creates or updates a group.
type NewGroup struct {
	Name        field.Text        `json:"name,omitzero"`
	Description field.Text        `json:"description,omitzero"`
	Status      field.Text        `json:"status,omitzero"`
	CustomData  customdata.Change `json:"customData,omitzero"`
	// sent by a client, and ignored (docs/interface/conventions.md#resources)
	NameKey field.Text `json:"nameKey,omitzero"`
}

// IsCustomDataAlone reports whether a body has custom data and nothing else, which does not change
// modifiedAt of the group (docs/interface/custom-data.md#endpoints).
func (in NewGroup) IsCustomDataAlone() bool {
	return in.CustomData.Present && in == NewGroup{CustomData: in.CustomData}
}

// CreateGroup is the request to create a group.
type CreateGroup struct {
	Tenant    id.ID    `json:"tenant"`
	ID        id.ID    `json:"id"`
	Directory id.ID    `json:"directory"`
	Group     NewGroup `json:"group"`
}

// ListGroups is the request for a page of groups.
type ListGroups struct {
	Tenant id.ID      `json:"tenant"`
	Stores []Store    `json:"stores"`
	Query  list.Query `json:"query"`
}
