-- +goose Up

-- The one table that does not begin with its tenant: a label is unique in the
-- deployment, because it is a host name, and a request to a Client API brings
-- nothing else. Where the tables are distributed by tenant this one is small
-- enough to be on every node. An application of before this table, or one that
-- the release before adds while it runs on, gets its label when it is first
-- asked for.
CREATE TABLE dns_labels (
    label text COLLATE "C" PRIMARY KEY,
    tenant_id uuid NOT NULL,
    application_id uuid NOT NULL,
    UNIQUE (tenant_id, application_id)
);

-- The API key that asked for an application; empty when no key did, or nobody
-- knows any more.
ALTER TABLE applications ADD COLUMN created_by text NOT NULL DEFAULT '';

CREATE UNIQUE INDEX application_of_web_config ON applications (tenant_id, web_config_id);
