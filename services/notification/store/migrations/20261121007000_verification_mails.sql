-- +goose Up

-- The mails that follow the proof of an address speak of the application that the
-- mail spoke of which asked for the proof.
CREATE INDEX deliveries_of_verification ON deliveries (tenant_id, account_id, created_at) WHERE workflow = 'verification';
