-- +goose Up

-- The web configs that differ from the default. A switch that is NULL follows
-- the directory of the application's default account store.
CREATE TABLE web_configs (
    tenant_id uuid NOT NULL,
    application_id uuid NOT NULL,
    status text NOT NULL,
    oauth2 boolean NOT NULL,
    register boolean NOT NULL,
    login boolean NOT NULL,
    verify_email boolean,
    forgot_password boolean,
    change_password boolean,
    me boolean NOT NULL,
    me_expand text[] NOT NULL,
    mfa_required boolean NOT NULL,
    mfa_factor_types text[] NOT NULL,
    signing_key_id text NOT NULL,
    created_at timestamptz NOT NULL,
    modified_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, application_id)
);
