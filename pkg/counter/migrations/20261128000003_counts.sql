-- +goose Up

-- How often something happened since its window began. No request takes back
-- what is counted here, and what it is about may be gone already.
CREATE TABLE counts (
    tenant_id uuid NOT NULL,
    subject text COLLATE "C" NOT NULL,
    count integer NOT NULL,
    ends_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, subject)
);
CREATE INDEX counts_age ON counts (ends_at);
