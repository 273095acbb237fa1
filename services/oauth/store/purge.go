package store

import (
	"github.com/doorward/doorward/pkg/counter"
	"github.com/doorward/doorward/pkg/purge/purgesql"
)

// ExpiringRows are the rows that have no effect when they have expired, for the purge. The first two have
// the order of TokenKinds.
var ExpiringRows = []purgesql.Rows{
	{Table: Refresh.table(), Time: "expires_at"},
	{Table: Access.table(), Time: "expires_at"},
	{Table: "consumed_assertions", Time: "expires_at"},
	{Table: "nonces", Time: "expires_at"},
	{Table: "password_changes", Time: "expires_at"},
	{Table: "openid_codes", Time: "expires_at"},
	{Table: "openid_pushed_requests", Time: "expires_at"},
	{Table: "openid_registration_tokens", Time: "expires_at"},
	{Table: "openid_devices", Time: "expires_at"},
	{Table: "openid_grants", Time: "expires_at"},
	{Table: "openid_refresh_tokens", Time: "expires_at"},
	{Table: "openid_access_tokens", Time: "expires_at"},
	{Table: "openid_clients", Time: "unused_until"},
	{Table: "openid_client_secrets", Time: "unused_until"},
	counter.Ended,
}
