-- +goose Up

-- A tenant is found by its id everywhere; its key is unique in the deployment.
CREATE TABLE tenants (
    tenant_id uuid PRIMARY KEY,
    key text NOT NULL UNIQUE,
    name text NOT NULL,
    created_at timestamptz NOT NULL,
    modified_at timestamptz NOT NULL
);

CREATE TABLE directories (
    tenant_id uuid NOT NULL REFERENCES tenants ON DELETE CASCADE,
    id uuid NOT NULL,
    name text NOT NULL,
    name_folded text NOT NULL,
    description text,
    status text NOT NULL,
    builtin boolean NOT NULL DEFAULT false,
    schema_id uuid NOT NULL,
    created_at timestamptz NOT NULL,
    modified_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, id),
    UNIQUE (tenant_id, name_folded)
);

CREATE TABLE account_creation_policies (
    tenant_id uuid NOT NULL,
    directory_id uuid NOT NULL,
    verification_email_status text NOT NULL DEFAULT 'DISABLED',
    verification_success_email_status text NOT NULL DEFAULT 'DISABLED',
    welcome_email_status text NOT NULL DEFAULT 'DISABLED',
    email_domain_whitelist text[] NOT NULL DEFAULT '{}',
    email_domain_blacklist text[] NOT NULL DEFAULT '{}',
    created_at timestamptz NOT NULL,
    modified_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, directory_id),
    FOREIGN KEY (tenant_id, directory_id) REFERENCES directories ON DELETE CASCADE
);

CREATE TABLE password_policies (
    tenant_id uuid NOT NULL,
    directory_id uuid NOT NULL,
    reset_token_ttl integer NOT NULL DEFAULT 24,
    reset_email_status text NOT NULL DEFAULT 'ENABLED',
    reset_success_email_status text NOT NULL DEFAULT 'ENABLED',
    min_length integer NOT NULL DEFAULT 8,
    max_length integer NOT NULL DEFAULT 100,
    min_lower_case integer NOT NULL DEFAULT 1,
    min_upper_case integer NOT NULL DEFAULT 1,
    min_numeric integer NOT NULL DEFAULT 1,
    min_symbol integer NOT NULL DEFAULT 0,
    min_diacritic integer NOT NULL DEFAULT 0,
    prevent_reuse integer NOT NULL DEFAULT 0,
    created_at timestamptz NOT NULL,
    modified_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, directory_id),
    FOREIGN KEY (tenant_id, directory_id) REFERENCES directories ON DELETE CASCADE
);

CREATE TABLE email_templates (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    directory_id uuid NOT NULL,
    workflow text NOT NULL,
    name text NOT NULL,
    description text,
    from_name text,
    from_email_address text,
    subject text NOT NULL,
    mime_type text NOT NULL,
    text_body text NOT NULL,
    html_body text NOT NULL,
    link_base_url text,
    created_at timestamptz NOT NULL,
    modified_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, id),
    UNIQUE (tenant_id, directory_id, workflow),
    FOREIGN KEY (tenant_id, directory_id) REFERENCES directories ON DELETE CASCADE
);

CREATE TABLE accounts (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    directory_id uuid NOT NULL,
    username text NOT NULL,
    username_folded text NOT NULL,
    email text NOT NULL,
    email_folded text NOT NULL,
    given_name text,
    middle_name text,
    surname text,
    status text NOT NULL,
    email_verification_status text NOT NULL,
    verification_digest bytea,
    verification_sealed bytea,
    verification_expires_at timestamptz,
    password_hash text NOT NULL DEFAULT '',
    password_modified_at timestamptz,
    owner boolean NOT NULL DEFAULT false,
    created_at timestamptz NOT NULL,
    modified_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, id),
    UNIQUE (tenant_id, directory_id, username_folded),
    UNIQUE (tenant_id, directory_id, email_folded),
    FOREIGN KEY (tenant_id, directory_id) REFERENCES directories ON DELETE CASCADE
);
CREATE UNIQUE INDEX accounts_verification ON accounts (tenant_id, verification_digest) WHERE verification_digest IS NOT NULL;
CREATE INDEX accounts_of_directory ON accounts (tenant_id, directory_id, id);
