package oauth

import (
	"context"
	"time"

	"github.com/doorward/doorward/pkg/api/oauthapi"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/oauth/store"
)

// AdministratorKey creates an API key in the database, without a running service, for a
// tenant whose administrators have no usable key (break-glass). The account is that of the
// tenant's owner, which cannot be disabled (directoryapi.API, Owner). The key is returned
// with its secret; a running service accepts it at once.
func AdministratorKey(ctx context.Context, data *store.Store, ring *secure.Keyring, now time.Time, tenant, account id.ID) (store.APIKey,
	error) {
	k := newAPIKey(ring, now, oauthapi.EnsureKey{Tenant: tenant, Account: account, ID: secure.KeyID(), Secret: secure.Token(secretLength)})
	name := "administrator key of the operator"
	k.Name = &name
	return k, data.Tx(ctx, func(tx *store.Tx) error { return tx.InsertAPIKey(ctx, k) })
}
