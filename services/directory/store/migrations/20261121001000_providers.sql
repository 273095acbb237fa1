-- +goose Up

-- What a mirror directory is a copy of. A cloud directory has no row here.
-- The settings differ by type and are never searched.
CREATE TABLE providers (
    tenant_id uuid NOT NULL,
    directory_id uuid NOT NULL,
    provider_type text NOT NULL,
    settings jsonb NOT NULL,
    client_secret_sealed bytea,
    created_at timestamptz NOT NULL,
    modified_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, directory_id),
    FOREIGN KEY (tenant_id, directory_id) REFERENCES directories ON DELETE CASCADE
);

-- The program that reads an LDAP or Active Directory server for a directory.
CREATE TABLE agents (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    directory_id uuid NOT NULL,
    status text NOT NULL,
    called_at timestamptz,
    config jsonb NOT NULL,
    password_sealed bytea NOT NULL,
    created_at timestamptz NOT NULL,
    modified_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, id),
    UNIQUE (tenant_id, directory_id),
    FOREIGN KEY (tenant_id, directory_id) REFERENCES directories ON DELETE CASCADE
);

-- Which facts of the provider go to which attributes of an account. The kind is
-- the collection under which the rules are addressed.
CREATE TABLE mapping_rules (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    directory_id uuid NOT NULL,
    kind text NOT NULL,
    items jsonb NOT NULL,
    created_at timestamptz NOT NULL,
    modified_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, id),
    UNIQUE (tenant_id, directory_id),
    FOREIGN KEY (tenant_id, directory_id) REFERENCES directories ON DELETE CASCADE
);

-- A SAML directory as a service provider: its key pair.
CREATE TABLE saml_service_providers (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    directory_id uuid NOT NULL,
    certificate_id uuid NOT NULL,
    certificate text NOT NULL,
    private_key_sealed bytea NOT NULL,
    created_at timestamptz NOT NULL,
    modified_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, id),
    UNIQUE (tenant_id, directory_id),
    UNIQUE (tenant_id, certificate_id),
    FOREIGN KEY (tenant_id, directory_id) REFERENCES directories ON DELETE CASCADE
);

-- What the provider said of an account at its last login. An account of a cloud
-- directory has no row here. External ids are compared byte for byte.
CREATE TABLE provider_data (
    tenant_id uuid NOT NULL,
    account_id uuid NOT NULL,
    directory_id uuid NOT NULL,
    external_id text COLLATE "C" NOT NULL,
    facts jsonb NOT NULL,
    tokens_sealed bytea,
    created_at timestamptz NOT NULL,
    modified_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, account_id),
    UNIQUE (tenant_id, directory_id, external_id),
    FOREIGN KEY (tenant_id, account_id) REFERENCES accounts ON DELETE CASCADE,
    FOREIGN KEY (tenant_id, directory_id) REFERENCES directories ON DELETE CASCADE
);
