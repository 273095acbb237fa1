-- +goose Up

-- How much each tenant used, by hour and by day (of UTC): logins, failed logins by their code, mails, text messages.
CREATE TABLE usage_counts (
    tenant_id uuid NOT NULL,
    span text NOT NULL, -- hour or day
    starts_at timestamptz NOT NULL,
    what text COLLATE "C" NOT NULL, -- login, failed and a code, mail, text
    n bigint NOT NULL,
    expires_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, span, starts_at, what)
);
CREATE INDEX usage_counts_age ON usage_counts (expires_at);
CREATE INDEX usage_counts_of_all_tenants ON usage_counts (span, starts_at);
