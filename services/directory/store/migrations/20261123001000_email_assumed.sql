-- +goose Up

-- Whether an account's email reads VERIFIED although its provider says nothing of it:
-- no other account is found by it or linked to it.
ALTER TABLE accounts ADD COLUMN email_assumed boolean NOT NULL DEFAULT false;
