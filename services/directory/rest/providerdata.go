package rest

import (
	"maps"

	"github.com/doorward/doorward/pkg/rest"
	"github.com/doorward/doorward/services/directory/store"
)

// providerData shows the facts beside what all provider data have, which no
// fact can hide.
func (v views) providerData(d store.ProviderData) map[string]any {
	view := make(map[string]any, len(d.Claims)+4)
	for name, fact := range d.Claims {
		view[name] = fact
	}
	maps.Copy(view, map[string]any{
		"href": v.Base.To("accounts", d.AccountID, "providerData"), "createdAt": rest.Time(d.CreatedAt), "modifiedAt": rest.Time(d.ModifiedAt),
		"providerId": v.ProviderID(d.ProviderID),
	})
	return view
}
