-- +goose Up

-- When the metadata of a SAML identity provider are read again from their address. NULL:
-- there is no address.
ALTER TABLE providers ADD COLUMN metadata_due_at timestamptz;
