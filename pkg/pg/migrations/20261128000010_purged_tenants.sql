-- +goose Up

-- The deleted tenants of which this schema has no rows any more (package tenantpurge).
CREATE TABLE purged_tenants (
    id uuid PRIMARY KEY,
    purged_at timestamptz NOT NULL DEFAULT now()
);
