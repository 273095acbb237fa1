-- +goose Up

-- The customData of whatever the service owns, by the id of its owner. An owner
-- without a row has an empty document. It is text, because jsonb changes numbers
-- and knows no \u0000.
CREATE TABLE custom_data (
    tenant_id uuid NOT NULL,
    owner_id uuid NOT NULL,
    document text NOT NULL,
    modified_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, owner_id)
);
