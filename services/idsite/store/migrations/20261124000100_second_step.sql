-- +goose Up

-- What a login that waits for its second step was begun with: a new password ends it.
ALTER TABLE login_flows ADD COLUMN password_modified_at timestamptz;

-- The pages of the flow are at the subdomain of the organization that its request names.
ALTER TABLE login_flows ADD COLUMN use_subdomain boolean NOT NULL DEFAULT false;

-- The organization that the login named.
ALTER TABLE login_flows ADD COLUMN organization_id uuid;

-- The type of the factor that was passed: one type is no proof where another is wanted.
ALTER TABLE login_flows ADD COLUMN factor_type text NOT NULL DEFAULT '';
ALTER TABLE sso_sessions ADD COLUMN factor_type text NOT NULL DEFAULT '';
