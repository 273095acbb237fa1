-- +goose Up

-- Keys with which an agent calls, and nothing else can be done. The id names
-- the tenant and the agent; the secret is shown once.
CREATE TABLE agent_keys (
    tenant_id uuid NOT NULL,
    id text NOT NULL,
    agent_id uuid NOT NULL,
    name text,
    secret_digest bytea NOT NULL,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, id),
    FOREIGN KEY (tenant_id, agent_id) REFERENCES agents ON DELETE CASCADE
);
CREATE INDEX agent_keys_of_agent ON agent_keys (tenant_id, agent_id, created_at, id);

-- The syncs of an agent; of those without an id, one row. Each sync with an id
-- has a number of its own, higher than those before it, which marks what its
-- pages held.
CREATE TABLE agent_syncs (
    tenant_id uuid NOT NULL,
    agent_id uuid NOT NULL,
    sync_id text NOT NULL,
    directory_id uuid NOT NULL,
    number bigint NOT NULL,
    started_at timestamptz NOT NULL,
    completed_at timestamptz,
    ended boolean NOT NULL DEFAULT false, -- all pages have come, and it is to be finished
    accounts bigint NOT NULL DEFAULT 0,
    groups bigint NOT NULL DEFAULT 0,
    refused bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant_id, agent_id, sync_id),
    FOREIGN KEY (tenant_id, agent_id) REFERENCES agents ON DELETE CASCADE
);
CREATE INDEX agent_syncs_ended ON agent_syncs (started_at) WHERE ended;

-- Entries of the directory server that were not taken, with the entry itself,
-- which is tried again when its sync completes.
CREATE TABLE agent_refusals (
    tenant_id uuid NOT NULL,
    agent_id uuid NOT NULL,
    kind text NOT NULL, -- account or group
    external_id text COLLATE "C" NOT NULL,
    name text NOT NULL,
    reason text NOT NULL,
    entry jsonb NOT NULL,
    seen bigint NOT NULL,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, agent_id, kind, external_id),
    FOREIGN KEY (tenant_id, agent_id) REFERENCES agents ON DELETE CASCADE
);

-- What an account of a mirror is at its source. status is what an administrator
-- wants it to be; while disabled is true, the account is DISABLED all the same.
CREATE TABLE mirrored_accounts (
    tenant_id uuid NOT NULL,
    directory_id uuid NOT NULL,
    external_id text COLLATE "C" NOT NULL,
    account_id uuid NOT NULL,
    digest bytea NOT NULL, -- of all that was sent
    disabled boolean NOT NULL,
    status text NOT NULL,
    seen bigint NOT NULL, -- number of the last sync that held it
    PRIMARY KEY (tenant_id, directory_id, external_id),
    UNIQUE (tenant_id, account_id) -- whose deletion deletes the row, without a check of every new one
);

CREATE TABLE mirrored_groups (
    tenant_id uuid NOT NULL,
    directory_id uuid NOT NULL,
    external_id text COLLATE "C" NOT NULL,
    group_id uuid NOT NULL,
    digest bytea NOT NULL,
    seen bigint NOT NULL,
    PRIMARY KEY (tenant_id, directory_id, external_id),
    UNIQUE (tenant_id, group_id),
    FOREIGN KEY (tenant_id, group_id) REFERENCES groups ON DELETE CASCADE
);

-- Members of groups whose accounts are not there yet.
CREATE TABLE mirrored_members (
    tenant_id uuid NOT NULL,
    directory_id uuid NOT NULL,
    external_id text COLLATE "C" NOT NULL,
    group_id uuid NOT NULL,
    PRIMARY KEY (tenant_id, directory_id, external_id, group_id),
    FOREIGN KEY (tenant_id, group_id) REFERENCES groups ON DELETE CASCADE
);
CREATE INDEX mirrored_members_of_group ON mirrored_members (tenant_id, group_id);

-- Password checks that logins wait for. A row lives for seconds: the table is in
-- no log and no backup, and is empty after a crash, as are the logins.
CREATE UNLOGGED TABLE agent_checks (
    tenant_id uuid NOT NULL,
    agent_id uuid NOT NULL,
    id uuid NOT NULL,
    external_id text NOT NULL,
    username text NOT NULL,
    password bytea, -- sealed; NULL when answered
    trace jsonb NOT NULL,
    result integer, -- 0 for success, 1 for a wrong password, else the code of an error
    created_at timestamptz NOT NULL,
    taken_until timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, id)
);
CREATE INDEX agent_checks_open ON agent_checks (tenant_id, agent_id, created_at) WHERE result IS NULL;
CREATE INDEX agent_checks_by_age ON agent_checks (created_at);
