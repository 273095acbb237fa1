-- +goose Up

-- How often something happened since its window began. No request takes back
-- what is counted here, and what it is about may be gone already. The mfa service
-- has had the table from its first release on.
CREATE TABLE IF NOT EXISTS counts (
    tenant_id uuid NOT NULL,
    subject text COLLATE "C" NOT NULL,
    count integer NOT NULL,
    ends_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, subject)
);
CREATE INDEX IF NOT EXISTS counts_age ON counts (ends_at);
