-- +goose Up

-- The accounts that have phones or factors. What a client does to them holds the
-- account's row, so that two requests of one account never see half of each
-- other; and all that an account has goes with its row.
CREATE TABLE accounts (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    directory_id uuid NOT NULL,
    PRIMARY KEY (tenant_id, id)
);
CREATE INDEX accounts_of_directory ON accounts (tenant_id, directory_id);

CREATE TABLE phones (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    account_id uuid NOT NULL,
    number text COLLATE "C" NOT NULL,
    name text,
    name_folded text COLLATE "C" NOT NULL,
    description text,
    description_folded text COLLATE "C" NOT NULL,
    status text NOT NULL,
    verification_status text NOT NULL,
    created_at timestamptz NOT NULL,
    modified_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, id),
    UNIQUE (tenant_id, account_id, number),
    FOREIGN KEY (tenant_id, account_id) REFERENCES accounts ON DELETE CASCADE
);
CREATE INDEX phones_by_number ON phones (tenant_id, number, id);
CREATE INDEX phones_by_creation ON phones (tenant_id, created_at, id);

-- The seed of an authenticator is sealed. last_step is the time step of the
-- latest code that was accepted: it and those before it are spent.
CREATE TABLE factors (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    account_id uuid NOT NULL,
    type text NOT NULL,
    phone_id uuid,
    account_name text,
    account_name_folded text COLLATE "C" NOT NULL,
    issuer text,
    issuer_folded text COLLATE "C" NOT NULL,
    secret_sealed bytea,
    last_step bigint NOT NULL,
    challenge_id uuid,
    status text NOT NULL,
    verification_status text NOT NULL,
    created_at timestamptz NOT NULL,
    modified_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, id),
    UNIQUE (tenant_id, phone_id),
    FOREIGN KEY (tenant_id, account_id) REFERENCES accounts ON DELETE CASCADE,
    FOREIGN KEY (tenant_id, phone_id) REFERENCES phones ON DELETE CASCADE
);
CREATE INDEX factors_of_account ON factors (tenant_id, account_id, id);

-- Of a code that was sent there is an HMAC-SHA-256 under a key of its own, which
-- is sealed: a million guesses are nothing, so a plain hash would hide nothing.
CREATE TABLE challenges (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    account_id uuid NOT NULL,
    factor_id uuid NOT NULL,
    status text NOT NULL,
    message text,
    code_key_sealed bytea,
    code_hash bytea,
    failures integer NOT NULL,
    expires_at timestamptz NOT NULL,
    created_at timestamptz NOT NULL,
    modified_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, id),
    FOREIGN KEY (tenant_id, factor_id) REFERENCES factors ON DELETE CASCADE
);
CREATE INDEX challenges_of_factor ON challenges (tenant_id, factor_id, id);
CREATE INDEX challenges_age ON challenges (created_at);

-- Accounts and directories that are gone, until what was being made for them
-- at that moment has been removed too.
CREATE TABLE removals (
    tenant_id uuid NOT NULL,
    owner_id uuid NOT NULL,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, owner_id)
);
