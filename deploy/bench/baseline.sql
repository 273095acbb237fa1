-- The tables of the baseline: the one of accounts, which is read, and tables with
-- the columns and indexes of those that the product inserts into.

CREATE TABLE account (
	id text PRIMARY KEY, email text NOT NULL, given_name text NOT NULL, surname text NOT NULL,
	status text NOT NULL, created_at timestamptz NOT NULL, modified_at timestamptz NOT NULL);
CREATE UNIQUE INDEX ON account (email);
INSERT INTO account SELECT 'account' || n, 'jo' || n || '@example.test', 'Jo', 'Doe', 'ENABLED', now(), now()
	FROM generate_series(1, current_setting('bench.rows')::int) n;

CREATE EXTENSION pg_trgm;
CREATE EXTENSION btree_gin;
CREATE TABLE imported (
	tenant_id uuid NOT NULL, id uuid NOT NULL, directory_id uuid NOT NULL,
	username text NOT NULL, username_folded text COLLATE "C" NOT NULL, email text NOT NULL, email_folded text COLLATE "C" NOT NULL,
	given_name text, given_name_folded text COLLATE "C" NOT NULL, middle_name_folded text COLLATE "C" NOT NULL DEFAULT '',
	surname text, surname_folded text COLLATE "C" NOT NULL, full_name_folded text COLLATE "C" NOT NULL,
	search text COLLATE "C" NOT NULL, status text NOT NULL, email_verification_status text NOT NULL, password_hash text NOT NULL,
	password_modified_at timestamptz NOT NULL, created_at timestamptz NOT NULL, modified_at timestamptz NOT NULL,
	PRIMARY KEY (tenant_id, id));
CREATE UNIQUE INDEX ON imported (tenant_id, directory_id, username_folded);
CREATE UNIQUE INDEX ON imported (tenant_id, directory_id, email_folded);
CREATE INDEX ON imported (directory_id, id) INCLUDE (tenant_id);
CREATE INDEX ON imported (directory_id, given_name_folded, id) INCLUDE (tenant_id);
CREATE INDEX ON imported (directory_id, middle_name_folded, id) INCLUDE (tenant_id);
CREATE INDEX ON imported (directory_id, surname_folded, id) INCLUDE (tenant_id);
CREATE INDEX ON imported (directory_id, full_name_folded, id) INCLUDE (tenant_id);
CREATE INDEX ON imported (directory_id, status, id) INCLUDE (tenant_id);
CREATE INDEX ON imported (directory_id, email_verification_status, id) INCLUDE (tenant_id);
CREATE INDEX ON imported (directory_id, created_at, id) INCLUDE (tenant_id);
CREATE INDEX ON imported (directory_id, modified_at, id) INCLUDE (tenant_id);
CREATE INDEX ON imported (directory_id, password_modified_at, id) INCLUDE (tenant_id);
CREATE INDEX ON imported USING gin (directory_id, search gin_trgm_ops) WITH (gin_pending_list_limit = 512);

CREATE TABLE refresh_token (
	tenant_id uuid NOT NULL, id uuid NOT NULL, application_id uuid NOT NULL, account_id uuid NOT NULL, key_id text NOT NULL,
	issued_at timestamptz NOT NULL, expires_at timestamptz NOT NULL, PRIMARY KEY (tenant_id, id));
CREATE INDEX ON refresh_token (tenant_id, account_id, id);
CREATE INDEX ON refresh_token (tenant_id, application_id);
CREATE INDEX ON refresh_token (expires_at);
CREATE TABLE access_token (
	tenant_id uuid NOT NULL, id uuid NOT NULL, application_id uuid NOT NULL, account_id uuid NOT NULL, key_id text NOT NULL,
	refresh_id uuid, issued_at timestamptz NOT NULL, expires_at timestamptz NOT NULL, PRIMARY KEY (tenant_id, id));
CREATE INDEX ON access_token (tenant_id, account_id, id);
CREATE INDEX ON access_token (tenant_id, application_id);
CREATE INDEX ON access_token (expires_at);
ANALYZE;
