package store

import (
	"context"
	"time"

	"github.com/doorward/doorward/pkg/purge/purgesql"
)

// ExpiringRows are the rows that have no effect when they have expired, for the purge. The first two have
// the order of TokenKinds.
var ExpiringRows = []purgesql.Rows{
	{Table: Refresh.table(), Time: "expires_at"},
	{Table: Access.table(), Time: "expires_at"},
	{Table: "spent_assertions", Time: "expires_at"},
	{Table: "digest_nonces", Time: "expires_at"},
	{Table: "password_changes", Time: "expires_at"},
}

// Purge deletes the rows whose time is before a given one, and returns their number.
func (s *Store) Purge(ctx context.Context, rows purgesql.Rows, before time.Time) (int64, error) {
	return purgesql.Expired(ctx, s.db.InTx, rows, before)
}
