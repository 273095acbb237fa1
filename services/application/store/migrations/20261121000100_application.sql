-- +goose Up

-- The three satellites have addresses of their own; an application's links to
-- them stay the same for as long as it lives.
CREATE TABLE applications (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    name text NOT NULL,
    name_folded text NOT NULL,
    description text,
    status text NOT NULL,
    builtin boolean NOT NULL DEFAULT false,
    authorized_callback_uris text[] NOT NULL DEFAULT '{}',
    authorized_origin_uris text[] NOT NULL DEFAULT '{}',
    saml_policy_id uuid NOT NULL,
    web_config_id uuid NOT NULL,
    account_linking_policy_id uuid NOT NULL,
    created_at timestamptz NOT NULL,
    modified_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, id),
    UNIQUE (tenant_id, name_folded)
);

-- The order of login is list_index, 0 to n-1 without gaps. Its constraint waits
-- for the end of a transaction, because a move passes through doubles. Whoever
-- changes an application's mappings holds the lock on its row.
--
-- The default stores of an application are the flags here and nowhere else.
CREATE TABLE account_store_mappings (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    application_id uuid NOT NULL,
    store_kind text NOT NULL,
    store_id uuid NOT NULL,
    list_index integer NOT NULL CHECK (list_index >= 0),
    is_default_account_store boolean NOT NULL DEFAULT false,
    is_default_group_store boolean NOT NULL DEFAULT false,
    created_at timestamptz NOT NULL,
    modified_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, id),
    UNIQUE (tenant_id, application_id, store_id),
    UNIQUE (tenant_id, application_id, list_index) DEFERRABLE INITIALLY DEFERRED,
    FOREIGN KEY (tenant_id, application_id) REFERENCES applications ON DELETE CASCADE
);
CREATE INDEX mappings_of_store ON account_store_mappings (tenant_id, store_id);
CREATE UNIQUE INDEX default_account_store ON account_store_mappings (tenant_id, application_id) WHERE is_default_account_store;
CREATE UNIQUE INDEX default_group_store ON account_store_mappings (tenant_id, application_id) WHERE is_default_group_store;
