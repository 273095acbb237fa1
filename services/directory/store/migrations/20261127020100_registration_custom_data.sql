-- +goose Up

-- Root keys of customData that a user may set at a registration; NULL: all.
ALTER TABLE account_creation_policies ADD COLUMN registration_custom_data text[];
