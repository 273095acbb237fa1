-- +goose Up

-- The language of the request that caused a mail, for an account that has no locale.
ALTER TABLE deliveries ADD COLUMN language text NOT NULL DEFAULT '';
