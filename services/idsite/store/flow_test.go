package store_test

import (
	"testing"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/services/idsite/store"
)

// A logout must not end the session that another user has at an identity provider.
func TestTheSessionAtAnIdentityProviderIsThatOfOneAccount(t *testing.T) {
	t.Parallel()
	jo, eve := directoryapi.Account{ID: id.ID{1}}, directoryapi.Account{ID: id.ID{2}}
	flow := store.Flow{}.WithAccount(jo, id.ID{})
	flow.SAMLSession = &directoryapi.SAMLSession{}
	if again := flow.WithAccount(jo, id.ID{}); again.SAMLSession == nil {
		t.Error("the second step of the same account loses it")
	}
	if other := flow.WithAccount(eve, id.ID{}); other.SAMLSession != nil {
		t.Error("another account has it")
	}
}
