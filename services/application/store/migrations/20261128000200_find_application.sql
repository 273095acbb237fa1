-- +goose Up

-- A public address of an OpenID provider names the application alone: this leads to the tenant.
CREATE UNIQUE INDEX applications_id ON applications (id);
