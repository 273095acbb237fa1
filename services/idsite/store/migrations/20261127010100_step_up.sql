-- +goose Up

-- The account of a login has passed a factor of a type that the login does not allow.
ALTER TABLE login_flows ADD COLUMN stepped_up boolean NOT NULL DEFAULT false;
