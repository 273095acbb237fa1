package directory

import (
	"errors"
	"testing"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
)

func TestTheNamesThatASchemaRequires(t *testing.T) {
	jo, none := "Jo", " "
	for _, c := range []struct {
		givenName, surname *string
		requires           [2]bool
		refused            bool
	}{
		{nil, nil, [2]bool{false, false}, false},
		{nil, nil, [2]bool{true, false}, true},
		{nil, nil, [2]bool{false, true}, true},
		{&jo, nil, [2]bool{true, false}, false},
		{&jo, nil, [2]bool{true, true}, true},
		{nil, &jo, [2]bool{true, true}, true},
		{nil, &jo, [2]bool{false, true}, false},
		{&none, &jo, [2]bool{true, true}, true},
		{&jo, &none, [2]bool{true, false}, false},
		{&jo, &jo, [2]bool{true, true}, false},
	} {
		err := CheckRequired(directoryapi.Account{GivenName: c.givenName, Surname: c.surname}, c.requires[0], c.requires[1])
		if c.refused != errors.Is(err, apierr.Required) || !c.refused && err != nil {
			t.Errorf("CheckRequired of %+v returned %v", c, err)
		}
	}
}
