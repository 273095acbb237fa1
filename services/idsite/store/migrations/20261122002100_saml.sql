-- +goose Up

-- A login that a SAML service provider asked for: the service provider, the id of
-- its request, its relay state, and the SHA-256 of the cookie of the browser.
ALTER TABLE login_flows ADD COLUMN saml_request jsonb;

-- The session of the account at the SAML identity provider of its directory: what a
-- logout there has to name.
ALTER TABLE login_flows ADD COLUMN saml_session jsonb;
ALTER TABLE sso_sessions ADD COLUMN saml_session jsonb;
