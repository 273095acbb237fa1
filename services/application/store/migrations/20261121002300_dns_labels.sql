-- +goose Up

-- The name of an application's Client API, empty for the console. One of before
-- this column, or that the release before adds while it runs on, gets its name
-- when it is first asked for. The API key that asked for an application is empty
-- when no key did, or nobody knows any more.
ALTER TABLE applications
    ADD COLUMN dns_label text COLLATE "C" NOT NULL DEFAULT '',
    ADD COLUMN created_by text NOT NULL DEFAULT '';
CREATE UNIQUE INDEX application_of_web_config ON applications (tenant_id, web_config_id);

-- The one table that does not begin with its tenant. A request to a Client API
-- arrives with a host name and nothing else: this leads to the tenant, and keeps
-- the label unique in the deployment. Where the tables are distributed by tenant
-- this one is small enough to be on every node.
CREATE TABLE dns_label_routes (
    label text COLLATE "C" PRIMARY KEY,
    tenant_id uuid NOT NULL,
    application_id uuid NOT NULL
);
