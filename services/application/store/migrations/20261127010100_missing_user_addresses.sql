-- +goose Up

-- The applications whose logins came, by an API key, without the address of the user.
CREATE TABLE missing_user_addresses (
    tenant_id uuid NOT NULL,
    application_id uuid NOT NULL,
    seen_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, application_id),
    FOREIGN KEY (tenant_id, application_id) REFERENCES applications ON DELETE CASCADE
);
