-- +goose Up

-- The client address that began a login without a key: how many it may begin is limited.
-- Empty: an application has signed the request.
ALTER TABLE login_flows ADD COLUMN address text NOT NULL DEFAULT '';
ALTER TABLE provider_logins ADD COLUMN address text NOT NULL DEFAULT '';

-- What a SAML response says of the session of the user: when it began, and its name.
ALTER TABLE login_flows ADD COLUMN authenticated_at timestamptz;
ALTER TABLE login_flows ADD COLUMN session_index text NOT NULL DEFAULT '';
