-- +goose Up

-- Text messages are deliveries too. Their code is token_sealed; number and
-- message go with it when the row is done. attempted_at is noted before the
-- provider is spoken to, so that no text is sent twice. A text that is not done
-- is UNSENT: the previous release, which looks for WAITING, leaves it alone.
ALTER TABLE deliveries
    ADD COLUMN kind text NOT NULL DEFAULT 'MAIL',
    ADD COLUMN challenge_id uuid,
    ADD COLUMN number text COLLATE "C" NOT NULL DEFAULT '',
    ADD COLUMN message text NOT NULL DEFAULT '',
    ADD COLUMN expires_at timestamptz,
    ADD COLUMN attempted_at timestamptz;

-- deliveries_due stays for the previous release.
CREATE INDEX deliveries_due_of_kind ON deliveries (kind, next_try_at) WHERE finished_at IS NULL;
