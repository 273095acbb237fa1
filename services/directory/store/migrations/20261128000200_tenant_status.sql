-- +goose Up

-- What the operators of the deployment have decided about a tenant.
ALTER TABLE tenants ADD COLUMN status text NOT NULL DEFAULT 'ENABLED', -- ENABLED, SUSPENDED or DELETING
    ADD COLUMN status_reason text,
    ADD COLUMN suspended_at timestamptz,
    ADD COLUMN delete_after timestamptz;       -- when the rows of a tenant go that is DELETING
