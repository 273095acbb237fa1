-- +goose Up
-- A known text, sealed under each master key of the deployment by its id: pkg/reseal/canary.go.
CREATE TABLE master_key_canaries (
    key_id text PRIMARY KEY,
    sealed bytea NOT NULL,
    created_at timestamptz NOT NULL
);
