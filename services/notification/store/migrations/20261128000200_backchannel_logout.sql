-- +goose Up

-- The back-channel logout of a client is a delivery of the kind LOGOUT. Its workflow is the id of the client, so that an
-- event has one for each.
ALTER TABLE deliveries
    ADD COLUMN client_id uuid,
    ADD COLUMN session_id uuid;                  -- the claim sid
