package rest

import (
	"encoding/json"
	"maps"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/api/oauthapi"
	"github.com/doorward/doorward/pkg/rest"
	"github.com/doorward/doorward/pkg/rest/directoryview"
	"github.com/doorward/doorward/services/idsite"
)

// collectionView is a collection that is shown without pagination.
type collectionView[T any] struct {
	Size  int `json:"size"`
	Items []T `json:"items"`
}

func newCollectionView[S, T any](from []S, view func(S) T) *collectionView[T] {
	out := &collectionView[T]{Size: len(from), Items: []T{}}
	for _, each := range from {
		out.Items = append(out.Items, view(each))
	}
	return out
}

type namedView struct {
	rest.Head
	Name        string  `json:"name"`
	Description *string `json:"description"`
	Status      string  `json:"status,omitempty"`
}

type tenantView struct {
	rest.Head
	Name string `json:"name"`
	Key  string `json:"key"`
}

type keyView struct {
	Href        string  `json:"href"`
	ID          string  `json:"id"`
	Status      string  `json:"status"`
	Name        *string `json:"name"`
	Description *string `json:"description"`
}

// profileView is an account with the parts that the web config shows, each with its
// plain attributes (docs/interface/client-api.md#me).
type profileView struct {
	directoryview.AccountAttributes
	APIKeys          *collectionView[keyView]   `json:"apiKeys,omitempty"`
	Applications     *collectionView[namedView] `json:"applications,omitempty"`
	CustomData       json.RawMessage            `json:"customData,omitempty"`
	Directory        *namedView                 `json:"directory,omitempty"`
	GroupMemberships *collectionView[rest.Head] `json:"groupMemberships,omitempty"`
	Groups           *collectionView[namedView] `json:"groups,omitempty"`
	ProviderData     map[string]any             `json:"providerData,omitempty"`
	Tenant           *tenantView                `json:"tenant,omitempty"`
}

func (c *clientCall) profile(me idsite.Me) profileView {
	out := profileView{AccountAttributes: c.account(me.Account), CustomData: me.CustomData}
	for _, name := range c.Config.MeExpand {
		switch name {
		case "directory":
			d := me.Directory
			out.Directory = &namedView{
				Head: c.resourceHead("directories", d.ID, d.CreatedAt, d.ModifiedAt), Name: d.Name, Description: d.Description,
				Status: d.Status,
			}
		case "tenant":
			t := me.Tenant
			out.Tenant = &tenantView{c.resourceHead("tenants", t.ID, t.CreatedAt, t.ModifiedAt), t.Name, t.Key}
		case "groups":
			out.Groups = newCollectionView(me.Groups, func(g directoryapi.Group) namedView {
				return namedView{Head: c.resourceHead("groups", g.ID, g.CreatedAt, g.ModifiedAt), Name: g.Name,
					Description: g.Description,
					Status:      g.Status}
			})
		case "groupMemberships":
			out.GroupMemberships = newCollectionView(me.Memberships, func(m directoryapi.ProfileMembership) rest.Head {
				return c.resourceHead("groupMemberships", m.ID, m.CreatedAt, m.ModifiedAt)
			})
		case "applications":
			out.Applications = newCollectionView(me.Applications, func(a applicationapi.Application) namedView {
				return namedView{Head: c.resourceHead("applications", a.ID, a.CreatedAt, a.ModifiedAt), Name: a.Name,
					Description: a.Description,
					Status:      a.Status}
			})
		case "providerData":
			if json.Unmarshal(me.ProviderData, &out.ProviderData) != nil || out.ProviderData == nil {
				out.ProviderData = map[string]any{}
			}
			maps.Copy(out.ProviderData, map[string]any{
				"href": c.base.To("accounts", me.Account.ID, "providerData"), "createdAt": out.CreatedAt,
				"modifiedAt": out.ModifiedAt,
			})
		case "apiKeys":
			out.APIKeys = newCollectionView(me.Keys, func(k oauthapi.Key) keyView {
				return keyView{c.base.Path("apiKeys", k.ID), k.ID, k.Status, k.Name, k.Description}
			})
		}
	}
	return out
}
