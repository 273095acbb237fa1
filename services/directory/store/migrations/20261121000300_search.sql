-- +goose Up

-- Text that is searched or sorted stands in a column of its normal form, in the
-- order of its code points. search joins them, so that one index finds any part
-- of any of them (pg_trgm), within one directory (btree_gin).
ALTER TABLE directories
    ALTER COLUMN name_folded TYPE text COLLATE "C",
    ADD COLUMN description_folded text COLLATE "C" NOT NULL DEFAULT '',
    ADD COLUMN search text COLLATE "C" NOT NULL DEFAULT '';
UPDATE directories SET description_folded = lower(normalize(coalesce(description, ''), NFKC));
UPDATE directories SET search = name_folded || E'\n' || description_folded;
CREATE INDEX directories_by_status ON directories (tenant_id, status, id);
CREATE INDEX directories_by_creation ON directories (tenant_id, created_at, id);
CREATE INDEX directories_by_change ON directories (tenant_id, modified_at, id);
CREATE INDEX directories_search ON directories USING gin (tenant_id, search gin_trgm_ops) WITH (gin_pending_list_limit = 128);

ALTER TABLE accounts
    ALTER COLUMN username_folded TYPE text COLLATE "C",
    ALTER COLUMN email_folded TYPE text COLLATE "C",
    ADD COLUMN given_name_folded text COLLATE "C" NOT NULL DEFAULT '',
    ADD COLUMN middle_name_folded text COLLATE "C" NOT NULL DEFAULT '',
    ADD COLUMN surname_folded text COLLATE "C" NOT NULL DEFAULT '',
    ADD COLUMN full_name_folded text COLLATE "C" NOT NULL DEFAULT '',
    ADD COLUMN search text COLLATE "C" NOT NULL DEFAULT '',
    -- A directory goes at once and its accounts after it, a few at a time.
    DROP CONSTRAINT accounts_tenant_id_directory_id_fkey;
UPDATE accounts SET
    given_name_folded = lower(normalize(coalesce(given_name, ''), NFKC)),
    middle_name_folded = lower(normalize(coalesce(middle_name, ''), NFKC)),
    surname_folded = lower(normalize(coalesce(surname, ''), NFKC)),
    full_name_folded = lower(normalize(concat_ws(' ', given_name, middle_name, surname), NFKC));
UPDATE accounts SET search = concat_ws(E'\n', username_folded, nullif(email_folded, username_folded), given_name_folded, middle_name_folded, surname_folded);
-- An index for an order begins with the directory, whose id no other tenant has,
-- so that the planner cannot take it for a way to find an account by its id.
DROP INDEX accounts_of_directory;
CREATE INDEX accounts_of_directory ON accounts (directory_id, id) INCLUDE (tenant_id);
CREATE INDEX accounts_by_given_name ON accounts (directory_id, given_name_folded, id) INCLUDE (tenant_id);
CREATE INDEX accounts_by_middle_name ON accounts (directory_id, middle_name_folded, id) INCLUDE (tenant_id);
CREATE INDEX accounts_by_surname ON accounts (directory_id, surname_folded, id) INCLUDE (tenant_id);
CREATE INDEX accounts_by_full_name ON accounts (directory_id, full_name_folded, id) INCLUDE (tenant_id);
CREATE INDEX accounts_by_status ON accounts (directory_id, status, id) INCLUDE (tenant_id);
CREATE INDEX accounts_by_verification ON accounts (directory_id, email_verification_status, id) INCLUDE (tenant_id);
CREATE INDEX accounts_by_creation ON accounts (directory_id, created_at, id) INCLUDE (tenant_id);
CREATE INDEX accounts_by_change ON accounts (directory_id, modified_at, id) INCLUDE (tenant_id);
CREATE INDEX accounts_by_password_change ON accounts (directory_id, password_modified_at, id) INCLUDE (tenant_id);
-- A pending list of half a megabyte: a longer one makes inserts cheaper, and a
-- search reads all of it.
CREATE INDEX accounts_search ON accounts USING gin (directory_id, search gin_trgm_ops) WITH (gin_pending_list_limit = 512);

-- How many accounts of each status a directory has, spread over rows so that
-- registrations at the same moment do not wait for each other.
CREATE TABLE account_counts (
    tenant_id uuid NOT NULL,
    directory_id uuid NOT NULL,
    status text NOT NULL,
    shard smallint NOT NULL,
    n bigint NOT NULL,
    PRIMARY KEY (tenant_id, directory_id, status, shard),
    FOREIGN KEY (tenant_id, directory_id) REFERENCES directories ON DELETE CASCADE
);
INSERT INTO account_counts SELECT tenant_id, directory_id, status, 0, count(*) FROM accounts GROUP BY tenant_id, directory_id, status;

-- The searchable values of the accounts' custom data. element is true for a
-- value inside an array.
CREATE TABLE account_values (
    tenant_id uuid NOT NULL,
    account_id uuid NOT NULL,
    place integer NOT NULL,
    directory_id uuid NOT NULL,
    path text COLLATE "C" NOT NULL,
    element boolean NOT NULL,
    text text COLLATE "C" NOT NULL,
    number numeric,
    moment timestamptz,
    PRIMARY KEY (tenant_id, account_id, place),
    FOREIGN KEY (tenant_id, account_id) REFERENCES accounts ON DELETE CASCADE
);
CREATE INDEX account_values_by_text ON account_values (directory_id, path, text, account_id);
-- The order of values, too: numbers, and behind them texts.
CREATE INDEX account_values_by_number ON account_values (directory_id, path, number, text, account_id);
CREATE INDEX account_values_by_moment ON account_values (directory_id, path, moment, account_id) WHERE moment IS NOT NULL;
-- Of any directory and path: with both in the index it was ten times as slow
-- where it is of use. In a small directory account_values_by_text is read.
CREATE INDEX account_values_search ON account_values USING gin (text gin_trgm_ops) WITH (gin_pending_list_limit = 128);

-- Directories that are gone and whose accounts and groups are being removed.
CREATE TABLE directory_removals (
    tenant_id uuid NOT NULL,
    directory_id uuid NOT NULL,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, directory_id)
);
