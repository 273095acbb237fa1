-- +goose Up

-- The claim state of a request may be a number, or any other JSON.
ALTER TABLE login_flows ADD COLUMN state_json text;
