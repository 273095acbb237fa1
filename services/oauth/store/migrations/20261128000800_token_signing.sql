-- +goose Up

-- What signs the access and refresh tokens of an application: API_KEY or SIGNING_KEY.
ALTER TABLE oauth_policies ADD COLUMN token_signing text NOT NULL DEFAULT 'API_KEY';
