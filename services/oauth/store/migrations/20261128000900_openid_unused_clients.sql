-- +goose Up

-- Until when a client that has registered itself is kept without a login, and its secret with it; NULL: for ever.
ALTER TABLE openid_clients ADD COLUMN unused_until timestamptz;
ALTER TABLE openid_client_secrets ADD COLUMN unused_until timestamptz;
