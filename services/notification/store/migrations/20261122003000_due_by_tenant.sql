-- +goose Up

-- The tenants take turns: a worker steps from one to the next along this index.
-- deliveries_due_of_kind stays for the previous release. What writes here are
-- handlers of events, which nobody waits for.
-- squawk-ignore require-concurrent-index-creation
CREATE INDEX deliveries_due_by_tenant ON deliveries (kind, tenant_id, next_try_at) WHERE finished_at IS NULL;
