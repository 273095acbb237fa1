-- +goose Up

-- The account with the status UNVERIFIED whose right password was entered in a login.
ALTER TABLE login_flows ADD COLUMN unverified_id uuid;
