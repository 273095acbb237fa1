-- +goose Up

-- Which shard has the rows of a tenant; the main one where it is not named. Rows are
-- in the main shard alone (pkg/pg/shard.go).
CREATE TABLE tenant_shards (
    tenant_id uuid PRIMARY KEY,
    shard text NOT NULL,
    moved_at timestamptz NOT NULL
);

-- The tenants that nothing may be written for in this database: they are being moved,
-- or are in another one. Each move that closes one sets the time anew.
CREATE TABLE closed_tenants (
    tenant_id uuid PRIMARY KEY,
    closed_at timestamptz NOT NULL
);

-- The name by which DATABASE_URLS leads to this database, so that two that are mixed
-- up are noticed. A database that is the only one has no row.
CREATE TABLE shard_name (
    single boolean PRIMARY KEY DEFAULT true CHECK (single),
    name text NOT NULL
);

-- Each transaction that may write begins with this where there are several shards. It
-- keeps the tenant from being closed until the transaction ends, and fails with DW001
-- if it is.
-- +goose StatementBegin
CREATE FUNCTION enter_tenant(entered uuid) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock_shared(hashtextextended(current_schema() || '/' || entered::text, 0));
    IF EXISTS (SELECT FROM closed_tenants WHERE tenant_id = entered) THEN
        RAISE EXCEPTION 'the tenant % is closed in this database', entered USING ERRCODE = 'DW001';
    END IF;
END $$;
-- +goose StatementEnd

-- Waits for the transactions that have entered the tenant, and lets no other enter.
-- +goose StatementBegin
CREATE FUNCTION close_tenant(closed uuid) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended(current_schema() || '/' || closed::text, 0));
    INSERT INTO closed_tenants (tenant_id, closed_at) VALUES (closed, clock_timestamp())
        ON CONFLICT (tenant_id) DO UPDATE SET closed_at = excluded.closed_at;
END $$;
-- +goose StatementEnd
