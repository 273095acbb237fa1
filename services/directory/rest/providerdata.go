package rest

import (
	"maps"

	"github.com/doorward/doorward/pkg/rest"
	"github.com/doorward/doorward/services/directory/store"
)

// providerData shows the claims of the provider beside href, times and providerId, which no claim
// can overwrite.
func (v views) providerData(d store.ProviderData) map[string]any {
	view := make(map[string]any, len(d.Claims)+4)
	for name, claim := range d.Claims {
		view[name] = claim
	}
	maps.Copy(view, map[string]any{
		"href": v.Base.To("accounts", d.AccountID, "providerData"), "createdAt": rest.Time(d.CreatedAt),
		"modifiedAt": rest.Time(d.ModifiedAt),
		"providerId": v.ProviderID(d.ProviderID),
	})
	return view
}
