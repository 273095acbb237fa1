-- +goose Up

-- A schema is found by its id.
CREATE UNIQUE INDEX directories_schema ON directories (tenant_id, schema_id);

-- The fields of the account schema of every directory: givenName and surname.
CREATE TABLE schema_fields (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    directory_id uuid NOT NULL,
    name text COLLATE "C" NOT NULL,
    required boolean NOT NULL DEFAULT false,
    created_at timestamptz NOT NULL,
    modified_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, id),
    UNIQUE (tenant_id, directory_id, name),
    FOREIGN KEY (tenant_id, directory_id) REFERENCES directories ON DELETE CASCADE
);

INSERT INTO schema_fields (tenant_id, id, directory_id, name, created_at, modified_at)
SELECT d.tenant_id, gen_random_uuid(), d.id, f.name, d.created_at, d.created_at
FROM directories d CROSS JOIN (VALUES ('givenName'), ('surname')) AS f (name);
