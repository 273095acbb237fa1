package store

import (
	"context"

	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
)

// SealedColumn is a column of values that are sealed under the master key, each
// for a purpose that the id of its row is part of.
type SealedColumn struct{ table, id, column string }

// The columns of sealed values.
var (
	VerificationTokens  = SealedColumn{"accounts", "id", "verification_sealed"}
	ResetKeys           = SealedColumn{"tenants", "tenant_id", "reset_key_sealed"}
	ClientSecrets       = SealedColumn{"providers", "directory_id", "client_secret_sealed"}
	AgentPasswords      = SealedColumn{"agents", "id", "password_sealed"}
	SAMLPrivateKeys     = SealedColumn{"saml_service_providers", "id", "private_key_sealed"}
	ProviderDataSecrets = SealedColumn{"provider_data", "account_id", "tokens_sealed"}
)

// Sealed is a sealed value and the row that it stands in.
type Sealed struct {
	TenantID id.ID
	ID       id.ID
	Value    []byte
}

// LockUnmarked reads up to limit values of all tenants that do not begin with
// mark, which the transaction will seal again. It waits for another replica that
// does so, and then leaves out what that has done.
func (tx *Tx) LockUnmarked(ctx context.Context, c SealedColumn, mark []byte, limit int) ([]Sealed, error) {
	return pg.All[Sealed](ctx, tx, `SELECT tenant_id, `+c.id+` AS id, `+c.column+` AS value FROM `+c.table+`
		WHERE `+c.column+` IS NOT NULL AND substring(`+c.column+` FOR length($1::bytea)) <> $1::bytea LIMIT $2 FOR UPDATE`, mark, limit)
}

// Reseal writes a value anew.
func (tx *Tx) Reseal(ctx context.Context, c SealedColumn, s Sealed) error {
	return pg.MustChange(ctx, tx, `UPDATE `+c.table+` SET `+c.column+` = $3 WHERE tenant_id = $1 AND `+c.id+` = $2`, s.TenantID, s.ID, s.Value)
}
