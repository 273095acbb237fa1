-- +goose Up

-- A tenant has one built-in application, whose accounts are its administrators.
CREATE UNIQUE INDEX applications_builtin ON applications (tenant_id) WHERE builtin;
