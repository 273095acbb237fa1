-- +goose Up

-- Applications and organizations are what account stores are mapped to. Names are unique under their normal form.
-- An application's links to its SAML policy, its web config and its account linking policy stay the same for as long
-- as it lives. A tenant has one built-in application, whose accounts are its administrators.
CREATE TABLE applications (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    name text NOT NULL,
    name_folded text NOT NULL,
    description text,
    status text NOT NULL,
    builtin boolean NOT NULL DEFAULT false,
    dns_label text COLLATE "C" NOT NULL DEFAULT '',  -- of its Client API; empty for the console
    created_by text NOT NULL DEFAULT '',             -- API key that made it; empty when no key did
    authorized_callback_uris text[] NOT NULL DEFAULT '{}',
    authorized_origin_uris text[] NOT NULL DEFAULT '{}',
    home_url text,                                   -- NULL: the origin of its default callback
    saml_policy_id uuid NOT NULL,
    web_config_id uuid NOT NULL,
    account_linking_policy_id uuid NOT NULL,
    created_at timestamptz NOT NULL,
    modified_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, id),
    UNIQUE (tenant_id, name_folded)
);
CREATE UNIQUE INDEX applications_builtin ON applications (tenant_id) WHERE builtin;
CREATE UNIQUE INDEX application_of_web_config ON applications (tenant_id, web_config_id);
CREATE UNIQUE INDEX application_of_saml_policy ON applications (tenant_id, saml_policy_id);

-- A name_key has no form but its normal form.
CREATE TABLE organizations (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    name text NOT NULL,
    name_folded text COLLATE "C" NOT NULL,
    name_key text COLLATE "C" NOT NULL,
    description text,
    description_folded text COLLATE "C" NOT NULL,
    status text NOT NULL,
    account_linking_policy_id uuid NOT NULL,
    created_at timestamptz NOT NULL,
    modified_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, id),
    UNIQUE (tenant_id, name_folded),
    UNIQUE (tenant_id, name_key)
);

-- The order of login is list_index, 0 to n-1 without gaps. Its constraint waits for the end of a transaction, because
-- a move passes through doubles. The default stores of an owner are the flags here and nowhere else. Whoever changes
-- an owner's mappings holds the lock on the owner's row, which takes the place of a foreign key.
CREATE TABLE account_store_mappings (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    owner_kind text NOT NULL CHECK (owner_kind IN ('applications', 'organizations')),
    owner_id uuid NOT NULL,
    store_kind text NOT NULL,
    store_id uuid NOT NULL,
    directory_id uuid,                -- of a store that is a directory or a group: the mappings of both go with it
    social_provider text COLLATE "C", -- of a social directory, of which an owner has one of each
    list_index integer NOT NULL CHECK (list_index >= 0),
    is_default_account_store boolean NOT NULL DEFAULT false,
    is_default_group_store boolean NOT NULL DEFAULT false,
    created_at timestamptz NOT NULL,
    modified_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, id),
    UNIQUE (tenant_id, owner_id, store_id),
    UNIQUE (tenant_id, owner_id, list_index) DEFERRABLE INITIALLY DEFERRED
);
CREATE INDEX mappings_of_store ON account_store_mappings (tenant_id, store_id);
CREATE INDEX mappings_of_directory ON account_store_mappings (tenant_id, directory_id);
CREATE UNIQUE INDEX default_account_store ON account_store_mappings (tenant_id, owner_id) WHERE is_default_account_store;
CREATE UNIQUE INDEX default_group_store ON account_store_mappings (tenant_id, owner_id) WHERE is_default_group_store;
CREATE UNIQUE INDEX one_of_each_social_provider ON account_store_mappings (tenant_id, owner_id, social_provider)
    WHERE social_provider IS NOT NULL;

-- Each application and each organization has one policy.
CREATE TABLE account_linking_policies (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    owner_kind text NOT NULL CHECK (owner_kind IN ('applications', 'organizations')),
    owner_id uuid NOT NULL,
    status text NOT NULL,
    automatic_provisioning text NOT NULL,
    matching_property text,
    created_at timestamptz NOT NULL,
    modified_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, id),
    UNIQUE (tenant_id, owner_id)
);

-- The one table that does not begin with its tenant. A request to a Client API arrives with a host name and nothing
-- else: this leads to the tenant, and keeps the label unique in the deployment. Where the tables are distributed by
-- tenant this one is small enough to be on every node.
CREATE TABLE dns_label_routes (
    label text COLLATE "C" PRIMARY KEY,
    tenant_id uuid NOT NULL,
    application_id uuid NOT NULL
);

-- The counters of the login throttle: how often logins failed since a window began. The login and the address are
-- HMACs under a key that is not here; one of them is empty where the counter is that of the other alone. succeeded_at
-- makes an address known for a login.
CREATE TABLE login_counters (
    tenant_id uuid NOT NULL,
    login text COLLATE "C" NOT NULL,
    address text COLLATE "C" NOT NULL,
    failures integer NOT NULL,
    failure_limit integer NOT NULL,
    ends_at timestamptz NOT NULL,
    succeeded_at timestamptz,
    expires_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, login, address)
);
CREATE INDEX login_counters_succeeded ON login_counters (tenant_id, address, succeeded_at) WHERE succeeded_at IS NOT NULL;
CREATE INDEX login_counters_expired ON login_counters (expires_at);

-- The applications whose logins came, by an API key, without the address of the user.
CREATE TABLE missing_user_addresses (
    tenant_id uuid NOT NULL,
    application_id uuid NOT NULL,
    seen_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, application_id),
    FOREIGN KEY (tenant_id, application_id) REFERENCES applications ON DELETE CASCADE
);

-- Programs that may be logged in to by SAML, with the service as their identity provider. An entity id is compared
-- byte for byte, so its index has no folding.
CREATE TABLE saml_service_providers (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    name text,
    name_folded text COLLATE "C" NOT NULL,
    description text,
    description_folded text COLLATE "C" NOT NULL,
    assertion_consumer_service_url text COLLATE "C" NOT NULL,
    entity_id text COLLATE "C" NOT NULL,
    name_id_format text NOT NULL,
    encoded_x509_certificate text,
    requests_must_be_signed boolean, -- NULL: if it has a certificate
    created_at timestamptz NOT NULL,
    modified_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, id),
    UNIQUE (tenant_id, entity_id)
);

-- An application as an identity provider, made when it is first asked for: its key pair, and the rules of what its
-- assertions tell. Its id is that of the application's SAML policy.
CREATE TABLE saml_identity_providers (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    application_id uuid NOT NULL,
    status text NOT NULL,
    signature_algorithm text NOT NULL DEFAULT 'RSA-SHA256',
    certificate_id uuid NOT NULL, -- the id of the identity provider, until the key pair is replaced
    certificate text NOT NULL,
    private_key_sealed bytea NOT NULL,
    mapping_rules jsonb NOT NULL DEFAULT '[]',
    rules_modified_at timestamptz NOT NULL,
    created_at timestamptz NOT NULL,
    modified_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, id),
    UNIQUE (tenant_id, application_id),
    CONSTRAINT saml_certificate UNIQUE (tenant_id, certificate_id),
    FOREIGN KEY (tenant_id, application_id) REFERENCES applications ON DELETE CASCADE
);

-- Which registered service providers an identity provider serves.
CREATE TABLE saml_registrations (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    identity_provider_id uuid NOT NULL,
    service_provider_id uuid NOT NULL,
    status text NOT NULL,
    default_relay_state text,
    created_at timestamptz NOT NULL,
    modified_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, id),
    UNIQUE (tenant_id, identity_provider_id, service_provider_id),
    FOREIGN KEY (tenant_id, identity_provider_id) REFERENCES saml_identity_providers ON DELETE CASCADE,
    FOREIGN KEY (tenant_id, service_provider_id) REFERENCES saml_service_providers ON DELETE CASCADE
);
CREATE INDEX registrations_of_service_provider ON saml_registrations (tenant_id, service_provider_id);

-- What signs a tenant's default relay states, which are good for ever: a key of the tenant's own outlives the master
-- key that it is sealed under.
CREATE TABLE saml_relay_keys (
    tenant_id uuid PRIMARY KEY,
    key_sealed bytea NOT NULL,
    created_at timestamptz NOT NULL
);
