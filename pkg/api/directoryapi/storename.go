package directoryapi

import (
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
)

// StoreName names an account store of an application: by its href, or an organization by its key.
type StoreName struct {
	Href    string `json:"href"`
	NameKey string `json:"nameKey"`
}

// ReadStoreName reads a member of a body that names an account store. It returns the zero name
// where the member is absent or null, and apierr.WrongType for an object without href and nameKey.
func ReadStoreName(in field.Nullable[StoreName], name string) (StoreName, error) {
	where := in.Or(StoreName{})
	if in.Given() && where == (StoreName{}) {
		return where, apierr.WrongType.Because(`%s must be an object of the form {"href": "…"} or {"nameKey": "…"}`,
			name)
	}
	return where, nil
}
