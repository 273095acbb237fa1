-- +goose Up

-- The searchable values of the groups' custom data, as account_values.
CREATE TABLE group_values (
    tenant_id uuid NOT NULL,
    group_id uuid NOT NULL,
    place integer NOT NULL,
    directory_id uuid NOT NULL,
    path text COLLATE "C" NOT NULL,
    element boolean NOT NULL,
    text text COLLATE "C" NOT NULL,
    number numeric,
    moment timestamptz,
    PRIMARY KEY (tenant_id, group_id, place),
    FOREIGN KEY (tenant_id, group_id) REFERENCES groups ON DELETE CASCADE
);
CREATE INDEX group_values_by_text ON group_values (directory_id, path, text, group_id);
CREATE INDEX group_values_by_number ON group_values (directory_id, path, number, text, group_id);
CREATE INDEX group_values_by_moment ON group_values (directory_id, path, moment, group_id) WHERE moment IS NOT NULL;
