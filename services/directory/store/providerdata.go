package store

import (
	"context"
	"encoding/json"
	"time"

	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
)

// ProviderData is what the provider of a directory stated of the user of an account, and its
// tokens. UpsertProviderData (provider/account.go) stores it.
type ProviderData struct {
	AccountID    id.ID
	ProviderID   string                     // of the account's directory
	Claims       map[string]json.RawMessage // userInfo, or the attributes of a SAML assertion
	TokensSealed []byte                     // a JSON object of the provider's tokens
	CreatedAt    time.Time
	ModifiedAt   time.Time
}

// ProviderData returns the provider data of an account, or apierr.NotFound for the account. For an
// account without provider data it returns none, with the creation time of the account.
func (s *Store) ProviderData(ctx context.Context, tenant, account id.ID) (ProviderData, error) {
	return pg.One[ProviderData](ctx, s.db,
		`SELECT a.id AS account_id, d.provider_id, coalesce(p.claims, '{}') AS claims,
		p.tokens_sealed,
		coalesce(p.created_at, a.created_at) AS created_at, coalesce(p.modified_at, a.created_at) AS modified_at
		FROM accounts a
		JOIN directories d ON d.tenant_id = a.tenant_id AND d.id = a.directory_id
		LEFT JOIN provider_data p ON p.tenant_id = a.tenant_id AND p.account_id = a.id
		WHERE a.tenant_id = $1 AND a.id = $2`, tenant, account)
}
