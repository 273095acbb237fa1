-- +goose Up

-- When the tenant claimed its custom domain, and the domain whose control it has proved: a claim that is unproved after
-- a day gives way to another tenant. The claims of before have a day from now. The release before does not write these
-- columns: a proof names its domain, so that it ends when that release changes domain_name.
ALTER TABLE id_sites ADD COLUMN domain_claimed_at timestamptz NOT NULL DEFAULT now();
ALTER TABLE id_sites ADD COLUMN proved_domain text;
