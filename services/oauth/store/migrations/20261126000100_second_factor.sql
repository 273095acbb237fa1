-- +goose Up

-- Whether the login that a token was issued for has passed a second factor.
ALTER TABLE refresh_tokens ADD COLUMN second_factor boolean NOT NULL DEFAULT false;
ALTER TABLE access_tokens ADD COLUMN second_factor boolean NOT NULL DEFAULT false;
