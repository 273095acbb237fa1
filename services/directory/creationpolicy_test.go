package directory

import (
	"errors"
	"testing"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/customdata"
	"github.com/doorward/doorward/services/directory/store"
)

func TestKeysOfCustomDataAtARegistration(t *testing.T) {
	for _, c := range []struct {
		listed []string
		data   customdata.Document
		want   error
	}{
		{nil, `{"role":"admin"}`, nil},
		{[]string{}, ``, nil},
		{[]string{}, `{}`, nil},
		{[]string{}, `{"role":"admin"}`, apierr.UnknownProperty},
		{[]string{"newsletter"}, `{"newsletter":{"role":"weekly"}}`, nil},
		{[]string{"newsletter"}, `{"newsletter":true,"role":"admin"}`, apierr.UnknownProperty},
		{[]string{"role"}, `{"Role":"admin"}`, apierr.UnknownProperty},
	} {
		if err := checkRegistrationData(store.CreationPolicy{RegistrationCustomData: c.listed}, c.data); !errors.Is(err,
			c.want) {
			t.Errorf("%s where %v is listed returned %v, want %v", c.data, c.listed, err, c.want)
		}
	}
}
