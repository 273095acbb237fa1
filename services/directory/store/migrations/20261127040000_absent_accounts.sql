-- +goose Up

-- Accounts of a mirror that a complete sync no longer held (docs/interface/connectors.md). status is
-- DISABLED while absent_since is set; the purge deletes them after absentRetention of their agent.
ALTER TABLE accounts ADD COLUMN absent_since timestamptz;

-- Until absence_confirmed_until the brake is off. vanished counts the accounts that pages without a
-- complete sync have named as deleted since the last complete one.
ALTER TABLE agents
    ADD COLUMN absence_confirmed_until timestamptz,
    ADD COLUMN vanished bigint NOT NULL DEFAULT 0;
UPDATE agents SET config = '{"absentRetention":"P30D","maxAbsent":"10%"}'::jsonb || config;

-- absent counts the absent accounts of the directory when the sync ended. held counts the accounts
-- that a sync would have made absent, and which the brake has kept; 0: the sync was not held.
ALTER TABLE agent_syncs
    ADD COLUMN absent bigint NOT NULL DEFAULT 0,
    ADD COLUMN held bigint NOT NULL DEFAULT 0;

-- When a password check of an agent last ended without a result.
ALTER TABLE agents ADD COLUMN unanswered_at timestamptz;

-- unconfirmed is the number of a sync that stated the group without an account which it had not held
-- until then. Such a membership goes when the sync ends with the account; it stays while the account is
-- absent, and where the sync is held.
ALTER TABLE group_memberships ADD COLUMN unconfirmed bigint;
