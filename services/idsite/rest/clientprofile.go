package rest

import (
	"encoding/json"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/api/oauthapi"
	"github.com/doorward/doorward/pkg/rest"
	"github.com/doorward/doorward/services/idsite"
)

// all is a collection that is shown whole.
type all[T any] struct {
	Size  int `json:"size"`
	Items []T `json:"items"`
}

func allOf[S, T any](from []S, view func(S) T) all[T] {
	out := all[T]{Size: len(from), Items: []T{}}
	for _, each := range from {
		out.Items = append(out.Items, view(each))
	}
	return out
}

type namedView struct {
	rest.Head
	Name        string  `json:"name"`
	Key         string  `json:"key,omitempty"`
	Description *string `json:"description"`
	Status      string  `json:"status,omitempty"`
}

type keyView struct {
	Href        string  `json:"href"`
	ID          string  `json:"id"`
	Status      string  `json:"status"`
	Name        *string `json:"name"`
	Description *string `json:"description"`
}

// profile is an account with the parts that the web config shows, each with its
// plain attributes (docs/interface/client-api.md#me).
func (c *clientCall) profile(me idsite.Me) (map[string]any, error) {
	text, err := json.Marshal(c.account(me.Account))
	if err != nil {
		return nil, err
	}
	var out map[string]any
	if err := json.Unmarshal(text, &out); err != nil {
		return nil, err
	}
	group := func(g directoryapi.Group) namedView {
		return namedView{Head: c.head("groups", g.ID, g.CreatedAt, g.ModifiedAt), Name: g.Name, Description: g.Description, Status: g.Status}
	}
	application := func(a applicationapi.Application) namedView {
		return namedView{Head: c.head("applications", a.ID, a.CreatedAt, a.ModifiedAt), Name: a.Name, Description: a.Description,
			Status: a.Status}
	}
	for _, name := range c.Config.MeExpand {
		switch name {
		case "directory":
			d := me.Directory
			out[name] = namedView{Head: c.head("directories", d.ID, d.CreatedAt, d.ModifiedAt), Name: d.Name, Description: d.Description,
				Status: d.Status}
		case "tenant":
			t := me.Tenant
			out[name] = namedView{Head: c.head("tenants", t.ID, t.CreatedAt, t.ModifiedAt), Name: t.Name, Key: t.Key}
		case "customData":
			out[name] = me.CustomData
		case "providerData":
			out[name] = me.ProviderData
		case "groups":
			out[name] = allOf(me.Groups, group)
		case "groupMemberships":
			out[name] = allOf(me.Memberships, func(m directoryapi.ProfileMembership) rest.Head {
				return c.head("groupMemberships", m.ID, m.CreatedAt, m.ModifiedAt)
			})
		case "applications":
			out[name] = allOf(me.Applications, application)
		case "apiKeys":
			out[name] = allOf(me.Keys, func(k oauthapi.Key) keyView {
				return keyView{c.base.Path("apiKeys", k.ID), k.ID, k.Status, k.Name, k.Description}
			})
		}
	}
	return out, nil
}
